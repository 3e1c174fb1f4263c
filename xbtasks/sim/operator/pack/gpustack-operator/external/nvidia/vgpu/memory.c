/* Every family of device memory: allocation and release. */
#include "driver.h"
#include "real.h"

VGPU_HOOK CUresult cuMemAlloc_v2(CUdeviceptr *pointer, size_t size)
{
    return CUDA(cuMemAlloc_v2)(pointer, size);
}

VGPU_HOOK CUresult cuMemAllocPitch_v2(CUdeviceptr *pointer, size_t *pitch, size_t width, size_t height,
                                      unsigned int element)
{
    return CUDA(cuMemAllocPitch_v2)(pointer, pitch, width, height, element);
}

VGPU_HOOK CUresult cuMemAllocManaged(CUdeviceptr *pointer, size_t size, unsigned int flags)
{
    return CUDA(cuMemAllocManaged)(pointer, size, flags);
}

VGPU_HOOK CUresult cuMemAllocAsync(CUdeviceptr *pointer, size_t size, CUstream stream)
{
    return CUDA(cuMemAllocAsync)(pointer, size, stream);
}

VGPU_HOOK CUresult cuMemAllocAsync_ptsz(CUdeviceptr *pointer, size_t size, CUstream stream)
{
    return CUDA(cuMemAllocAsync_ptsz)(pointer, size, stream);
}

VGPU_HOOK CUresult cuMemAllocFromPoolAsync(CUdeviceptr *pointer, size_t size, CUmemoryPool pool, CUstream stream)
{
    return CUDA(cuMemAllocFromPoolAsync)(pointer, size, pool, stream);
}

VGPU_HOOK CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr *pointer, size_t size, CUmemoryPool pool,
                                                CUstream stream)
{
    return CUDA(cuMemAllocFromPoolAsync_ptsz)(pointer, size, pool, stream);
}

VGPU_HOOK CUresult cuMemAllocHost_v2(void **pointer, size_t size)
{
    return CUDA(cuMemAllocHost_v2)(pointer, size);
}

VGPU_HOOK CUresult cuMemHostAlloc(void **pointer, size_t size, unsigned int flags)
{
    return CUDA(cuMemHostAlloc)(pointer, size, flags);
}

VGPU_HOOK CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size,
                               const CUmemAllocationProp *properties, unsigned long long flags)
{
    return CUDA(cuMemCreate)(handle, size, properties, flags);
}

VGPU_HOOK CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
    return CUDA(cuMemRelease)(handle);
}

VGPU_HOOK CUresult cuMemFree_v2(CUdeviceptr pointer)
{
    return CUDA(cuMemFree_v2)(pointer);
}

VGPU_HOOK CUresult cuMemFreeAsync(CUdeviceptr pointer, CUstream stream)
{
    return CUDA(cuMemFreeAsync)(pointer, stream);
}

VGPU_HOOK CUresult cuMemFreeAsync_ptsz(CUdeviceptr pointer, CUstream stream)
{
    return CUDA(cuMemFreeAsync_ptsz)(pointer, stream);
}
