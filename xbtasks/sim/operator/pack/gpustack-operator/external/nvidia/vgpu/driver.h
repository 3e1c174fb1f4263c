/* The functions of the CUDA driver and NVML that the library hooks: names, types and signatures of the public
 * API, as far as they are used here. Handles are opaque; structures that are only handed on are incomplete. */
#ifndef VGPU_DRIVER_H
#define VGPU_DRIVER_H

#include <stddef.h>
#include <stdint.h>

#define VGPU_HOOK __attribute__((visibility("default")))

typedef int CUresult;
enum { CUDA_SUCCESS = 0, CUDA_ERROR_NOT_FOUND = 500 };

typedef int CUdevice;
typedef uint64_t CUdeviceptr;
typedef uint64_t CUmemGenericAllocationHandle;
typedef uint64_t cuuint64_t;
typedef struct CUctx_st *CUcontext;
typedef struct CUstream_st *CUstream;
typedef struct CUfunc_st *CUfunction;
typedef struct CUmemPoolHandle_st *CUmemoryPool;
typedef struct CUlaunchConfig_st CUlaunchConfig;
typedef struct CUmemAllocationProp_st CUmemAllocationProp;

/* process.c */
CUresult cuInit(unsigned int flags);
CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device);

/* memory.c */
CUresult cuMemAlloc_v2(CUdeviceptr *pointer, size_t size);
CUresult cuMemAllocPitch_v2(CUdeviceptr *pointer, size_t *pitch, size_t width, size_t height, unsigned int element);
CUresult cuMemAllocManaged(CUdeviceptr *pointer, size_t size, unsigned int flags);
CUresult cuMemAllocAsync(CUdeviceptr *pointer, size_t size, CUstream stream);
CUresult cuMemAllocAsync_ptsz(CUdeviceptr *pointer, size_t size, CUstream stream);
CUresult cuMemAllocFromPoolAsync(CUdeviceptr *pointer, size_t size, CUmemoryPool pool, CUstream stream);
CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr *pointer, size_t size, CUmemoryPool pool, CUstream stream);
CUresult cuMemAllocHost_v2(void **pointer, size_t size);
CUresult cuMemHostAlloc(void **pointer, size_t size, unsigned int flags);
CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size, const CUmemAllocationProp *properties,
                     unsigned long long flags);
CUresult cuMemRelease(CUmemGenericAllocationHandle handle);
CUresult cuMemFree_v2(CUdeviceptr pointer);
CUresult cuMemFreeAsync(CUdeviceptr pointer, CUstream stream);
CUresult cuMemFreeAsync_ptsz(CUdeviceptr pointer, CUstream stream);

/* device.c */
CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device);
CUresult cuMemGetInfo_v2(size_t *available, size_t *total);

/* launch.c */
CUresult cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                        unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int shared,
                        CUstream stream, void **parameters, void **extra);
CUresult cuLaunchKernel_ptsz(CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                             unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int shared,
                             CUstream stream, void **parameters, void **extra);
CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **parameters, void **extra);
CUresult cuLaunchKernelEx_ptsz(const CUlaunchConfig *config, CUfunction function, void **parameters, void **extra);

/* lookup.c */
CUresult cuGetProcAddress(const char *symbol, void **function, int version, cuuint64_t flags);
CUresult cuGetProcAddress_v2(const char *symbol, void **function, int version, cuuint64_t flags, int *status);

typedef int nvmlReturn_t;
enum { NVML_SUCCESS = 0, NVML_ERROR_FUNCTION_NOT_FOUND = 13 };

typedef struct nvmlDevice_st *nvmlDevice_t;
typedef struct {
    unsigned long long total, free, used;
} nvmlMemory_t;
typedef struct {
    unsigned int version;
    unsigned long long total, reserved, free, used;
} nvmlMemory_v2_t;

/* nvml.c */
nvmlReturn_t nvmlInit(void);
nvmlReturn_t nvmlInit_v2(void);
nvmlReturn_t nvmlInitWithFlags(unsigned int flags);
nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory);
nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory);

#endif
