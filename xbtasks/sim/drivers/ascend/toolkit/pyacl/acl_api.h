/* The functions of libascendcl.so that the module calls. */
#ifndef SIM_ACL_API_H
#define SIM_ACL_API_H

#include <stddef.h>
#include <stdint.h>

int aclInit(const char *config);
int aclFinalize(void);
int aclrtGetVersion(int32_t *major, int32_t *minor, int32_t *patch);
const char *aclrtGetSocName(void);
int aclrtSetDevice(int32_t device);
int aclrtResetDevice(int32_t device);
int aclrtGetDevice(int32_t *device);
int aclrtGetDeviceCount(uint32_t *count);
int aclrtSynchronizeDevice(void);
int aclrtCreateContext(void **context, int32_t device);
int aclrtDestroyContext(void *context);
int aclrtCreateStream(void **stream);
int aclrtDestroyStream(void *stream);
int aclrtSynchronizeStream(void *stream);
int aclrtMalloc(void **pointer, size_t size, int policy);
int aclrtMallocAlign32(void **pointer, size_t size, int policy);
int aclrtMallocCached(void **pointer, size_t size, int policy);
int aclrtMallocWithCfg(void **pointer, size_t size, int policy, void *configuration);
int aclrtMallocPhysical(void **handle, size_t size, const void *properties, uint64_t flags);
int aclrtFree(void *pointer);
int aclrtMallocHost(void **pointer, size_t size);
int aclrtFreeHost(void *pointer);
int aclrtGetMemInfo(int kind, size_t *available, size_t *total);
int aclrtMemcpy(void *target, size_t capacity, const void *source, size_t count, int kind);
int aclrtMemset(void *target, size_t capacity, int32_t value, size_t count);

#endif
