/* Memory that is had in the order of a stream. */
#include "allocations.h"
#include "driver.h"
#include "real.h"
#include "region.h"

static CUresult settle(CUresult result, const CUdeviceptr *pointer, int device, size_t size)
{
    if (result == CUDA_SUCCESS)
        vgpu_remember(*pointer, device, size);
    else
        vgpu_unbook(device, size);
    return result;
}

VGPU_HOOK CUresult cuMemAllocAsync(CUdeviceptr *pointer, size_t size, CUstream stream)
{
    int device = vgpu_current_device();

    if (!vgpu_book(device, size))
        return CUDA_ERROR_OUT_OF_MEMORY;
    return settle(CUDA(cuMemAllocAsync)(pointer, size, stream), pointer, device, size);
}

VGPU_HOOK CUresult cuMemAllocAsync_ptsz(CUdeviceptr *pointer, size_t size, CUstream stream)
{
    int device = vgpu_current_device();

    if (!vgpu_book(device, size))
        return CUDA_ERROR_OUT_OF_MEMORY;
    return settle(CUDA(cuMemAllocAsync_ptsz)(pointer, size, stream), pointer, device, size);
}

VGPU_HOOK CUresult cuMemAllocFromPoolAsync(CUdeviceptr *pointer, size_t size, CUmemoryPool pool, CUstream stream)
{
    int device = vgpu_current_device();

    if (!vgpu_book(device, size))
        return CUDA_ERROR_OUT_OF_MEMORY;
    return settle(CUDA(cuMemAllocFromPoolAsync)(pointer, size, pool, stream), pointer, device, size);
}

VGPU_HOOK CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr *pointer, size_t size, CUmemoryPool pool,
                                                CUstream stream)
{
    int device = vgpu_current_device();

    if (!vgpu_book(device, size))
        return CUDA_ERROR_OUT_OF_MEMORY;
    return settle(CUDA(cuMemAllocFromPoolAsync_ptsz)(pointer, size, pool, stream), pointer, device, size);
}

VGPU_HOOK CUresult cuMemFreeAsync(CUdeviceptr pointer, CUstream stream)
{
    CUresult result = CUDA(cuMemFreeAsync)(pointer, stream);

    if (result == CUDA_SUCCESS)
        vgpu_forget(pointer);
    return result;
}

VGPU_HOOK CUresult cuMemFreeAsync_ptsz(CUdeviceptr pointer, CUstream stream)
{
    CUresult result = CUDA(cuMemFreeAsync_ptsz)(pointer, stream);

    if (result == CUDA_SUCCESS)
        vgpu_forget(pointer);
    return result;
}
