/* What a program is told about a device's memory through NVML; nvidia-smi asks here. */
#include "driver.h"
#include "real.h"
#include "region.h"

VGPU_HOOK nvmlReturn_t nvmlInit(void)
{
    vgpu_region_start();
    return NVML(nvmlInit)();
}

VGPU_HOOK nvmlReturn_t nvmlInit_v2(void)
{
    vgpu_region_start();
    return NVML(nvmlInit_v2)();
}

VGPU_HOOK nvmlReturn_t nvmlInitWithFlags(unsigned int flags)
{
    vgpu_region_start();
    return NVML(nvmlInitWithFlags)(flags);
}

/* The limit of a device and what is used of it; 0 where it has none. */
static uint64_t limit_of(nvmlDevice_t device, uint64_t *used)
{
    unsigned int index;

    vgpu_region_start();
    if (NVML(nvmlDeviceGetIndex)(device, &index) != NVML_SUCCESS)
        return 0;
    *used = vgpu_used((int)index);
    return vgpu_memory_limit((int)index);
}

VGPU_HOOK nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory)
{
    nvmlReturn_t result = NVML(nvmlDeviceGetMemoryInfo)(device, memory);
    uint64_t used, limit = result == NVML_SUCCESS ? limit_of(device, &used) : 0;

    if (limit != 0)
        *memory = (nvmlMemory_t){limit, limit - used, used};
    return result;
}

VGPU_HOOK nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory)
{
    nvmlReturn_t result = NVML(nvmlDeviceGetMemoryInfo_v2)(device, memory);
    uint64_t used, limit = result == NVML_SUCCESS ? limit_of(device, &used) : 0;

    if (limit != 0) {
        memory->total = limit;
        memory->free = limit - used;
        memory->used = used;
    }
    return result;
}
