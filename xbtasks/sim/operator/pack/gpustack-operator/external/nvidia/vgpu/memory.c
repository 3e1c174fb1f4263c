/* Device memory that is had at once: it is booked before the driver is asked, and taken off if the driver refuses. */
#include "allocations.h"
#include "driver.h"
#include "real.h"
#include "region.h"

static CUresult settle(CUresult result, CUdeviceptr pointer, int device, uint64_t size)
{
    if (result == CUDA_SUCCESS)
        vgpu_remember(pointer, device, size);
    else
        vgpu_unbook(device, size);
    return result;
}

VGPU_HOOK CUresult cuMemAlloc_v2(CUdeviceptr *pointer, size_t size)
{
    int device = vgpu_current_device();
    CUresult result;

    if (!vgpu_book(device, size))
        return CUDA_ERROR_OUT_OF_MEMORY;
    result = CUDA(cuMemAlloc_v2)(pointer, size);
    return settle(result, result == CUDA_SUCCESS ? *pointer : 0, device, size);
}

/* How wide the driver makes a row is known only afterwards: booked is the row, rounded to whole elements. */
VGPU_HOOK CUresult cuMemAllocPitch_v2(CUdeviceptr *pointer, size_t *pitch, size_t width, size_t height,
                                      unsigned int element)
{
    int device = vgpu_current_device();
    uint64_t size = element == 0 ? 0 : (width + element - 1) / element * element * height;
    CUresult result;

    if (!vgpu_book(device, size))
        return CUDA_ERROR_OUT_OF_MEMORY;
    result = CUDA(cuMemAllocPitch_v2)(pointer, pitch, width, height, element);
    return settle(result, result == CUDA_SUCCESS ? *pointer : 0, device, size);
}

VGPU_HOOK CUresult cuMemAllocManaged(CUdeviceptr *pointer, size_t size, unsigned int flags)
{
    int device = vgpu_current_device();
    CUresult result;

    if (!vgpu_book(device, size))
        return CUDA_ERROR_OUT_OF_MEMORY;
    result = CUDA(cuMemAllocManaged)(pointer, size, flags);
    return settle(result, result == CUDA_SUCCESS ? *pointer : 0, device, size);
}

VGPU_HOOK CUresult cuMemFree_v2(CUdeviceptr pointer)
{
    CUresult result = CUDA(cuMemFree_v2)(pointer);

    if (result == CUDA_SUCCESS)
        vgpu_forget(pointer);
    return result;
}

/* Memory of the host isn't counted; there is none to be had while the device's is overdrawn. */
static int overdrawn(void)
{
    return !vgpu_book(vgpu_current_device(), 0);
}

VGPU_HOOK CUresult cuMemAllocHost_v2(void **pointer, size_t size)
{
    return overdrawn() ? CUDA_ERROR_OUT_OF_MEMORY : CUDA(cuMemAllocHost_v2)(pointer, size);
}

VGPU_HOOK CUresult cuMemHostAlloc(void **pointer, size_t size, unsigned int flags)
{
    return overdrawn() ? CUDA_ERROR_OUT_OF_MEMORY : CUDA(cuMemHostAlloc)(pointer, size, flags);
}
