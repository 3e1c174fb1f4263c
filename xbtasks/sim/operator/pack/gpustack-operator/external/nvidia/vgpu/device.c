/* What a program is told about the size of a device's memory, through the driver. */
#include "allocations.h"
#include "driver.h"
#include "log.h"
#include "real.h"
#include "region.h"

VGPU_HOOK CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
    CUresult result = CUDA(cuDeviceTotalMem_v2)(bytes, device);

    vgpu_region_start();
    if (result == CUDA_SUCCESS && vgpu_memory_limit(device) != 0)
        *bytes = vgpu_memory_limit(device);
    return result;
}

/* A limit above the device's memory doesn't make it larger. */
VGPU_HOOK CUresult cuMemGetInfo_v2(size_t *available, size_t *total)
{
    CUresult result = CUDA(cuMemGetInfo_v2)(available, total);
    int device = vgpu_current_device();
    uint64_t limit, used;

    if (result != CUDA_SUCCESS)
        return result;
    vgpu_region_start();
    limit = vgpu_memory_limit(device);
    if (limit == 0)
        return result;
    used = vgpu_used(device);
    if (used > limit) {
        LOG_WARN("limit < usage; usage=%lu, limit=%lu", (unsigned long)used, (unsigned long)limit);
        return CUDA_ERROR_INVALID_VALUE;
    }
    LOG_INFO("orig free=%zu total=%zu limit=%lu usage=%lu", *available, *total, (unsigned long)limit,
             (unsigned long)used);
    if (limit < *total)
        *total = limit;
    *available = *total > used ? *total - used : 0;
    return CUDA_SUCCESS;
}
