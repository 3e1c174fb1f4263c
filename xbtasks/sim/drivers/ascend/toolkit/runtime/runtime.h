/* The CANN runtime: its types and codes, as far as they are simulated. */
#ifndef SIM_RUNTIME_H
#define SIM_RUNTIME_H

#include <stddef.h>
#include <stdint.h>

#define RT_API __attribute__((visibility("default")))

typedef int32_t rtError_t;

enum {
    RT_ERROR_NONE = 0,
    ACL_ERROR_RT_PARAM_INVALID = 107000,
    ACL_ERROR_RT_INVALID_DEVICEID = 107001,
    ACL_ERROR_RT_CONTEXT_NULL = 107002,
    ACL_ERROR_RT_FEATURE_NOT_SUPPORT = 207000,
    ACL_ERROR_RT_MEMORY_ALLOCATION = 207001,
    ACL_ERROR_RT_DEV_SETUP_ERROR = 507033,
    ACL_ERROR_RT_DRV_INTERNAL_ERROR = 507899,
};

RT_API rtError_t rtSetDevice(int32_t device);
RT_API rtError_t rtDeviceReset(int32_t device);
RT_API rtError_t rtGetDevice(int32_t *device);
RT_API rtError_t rtGetDeviceCount(int32_t *count);
RT_API rtError_t rtGetSocVersion(char *name, uint32_t size);
RT_API rtError_t rtDeviceSynchronize(void);

RT_API rtError_t rtMalloc(void **pointer, uint64_t size, uint32_t type, uint16_t module);
RT_API rtError_t rtMallocCached(void **pointer, uint64_t size, uint32_t type, uint16_t module);
RT_API rtError_t rtMemAlloc(void **pointer, uint64_t size, int policy, int advise, void *config);
RT_API rtError_t rtsMalloc(void **pointer, uint64_t size, int policy, int advise, void *config);
RT_API rtError_t rtFree(void *pointer);
RT_API rtError_t rtMallocHost(void **pointer, uint64_t size, uint16_t module);
RT_API rtError_t rtFreeHost(void *pointer);
RT_API rtError_t rtMemGetInfoEx(int kind, size_t *available, size_t *total);
RT_API rtError_t rtMemcpy(void *target, uint64_t capacity, const void *source, uint64_t count, int kind);
RT_API rtError_t rtMemset(void *target, uint64_t capacity, uint32_t value, uint64_t count);

RT_API rtError_t rtMallocPhysical(void **handle, size_t size, void *properties, uint64_t flags);
RT_API rtError_t rtFreePhysical(void *handle);
RT_API rtError_t rtReserveMemAddress(void **pointer, size_t size, size_t alignment, void *wish, uint64_t flags);
RT_API rtError_t rtReleaseMemAddress(void *pointer);
RT_API rtError_t rtMapMem(void *pointer, size_t size, size_t offset, void *handle, uint64_t flags);
RT_API rtError_t rtUnmapMem(void *pointer);

RT_API rtError_t rtStreamCreate(void **stream, int32_t priority);
RT_API rtError_t rtStreamDestroy(void *stream);
RT_API rtError_t rtStreamSynchronize(void *stream);
RT_API rtError_t rtKernelLaunch(const void *stub, uint32_t blocks, void *arguments, uint32_t size, void *sm,
                                void *stream);

#endif
