/* Physical memory that a program maps itself: booked on the device that it lies on. */
#include "allocations.h"
#include "driver.h"
#include "real.h"
#include "region.h"

VGPU_HOOK CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size,
                               const CUmemAllocationProp *properties, unsigned long long flags)
{
    int device = -1;
    CUresult result;

    if (properties != NULL && properties->location.type == CU_MEM_LOCATION_TYPE_DEVICE)
        device = properties->location.id;
    if (!vgpu_book(device, size))
        return CUDA_ERROR_OUT_OF_MEMORY;
    result = CUDA(cuMemCreate)(handle, size, properties, flags);
    if (result == CUDA_SUCCESS)
        vgpu_remember(*handle, device, size);
    else
        vgpu_unbook(device, size);
    return result;
}

VGPU_HOOK CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
    CUresult result = CUDA(cuMemRelease)(handle);

    if (result == CUDA_SUCCESS)
        vgpu_forget(handle);
    return result;
}
