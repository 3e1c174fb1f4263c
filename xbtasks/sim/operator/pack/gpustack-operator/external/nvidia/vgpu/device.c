/* What a program is told about the size of a device's memory, through the driver. */
#include "driver.h"
#include "real.h"

VGPU_HOOK CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
    return CUDA(cuDeviceTotalMem_v2)(bytes, device);
}

VGPU_HOOK CUresult cuMemGetInfo_v2(size_t *available, size_t *total)
{
    return CUDA(cuMemGetInfo_v2)(available, total);
}
