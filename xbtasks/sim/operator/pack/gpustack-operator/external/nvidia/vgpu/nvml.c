/* What a program is told about a device's memory through NVML; nvidia-smi asks here. */
#include "driver.h"
#include "real.h"

VGPU_HOOK nvmlReturn_t nvmlInit(void)
{
    return NVML(nvmlInit)();
}

VGPU_HOOK nvmlReturn_t nvmlInit_v2(void)
{
    return NVML(nvmlInit_v2)();
}

VGPU_HOOK nvmlReturn_t nvmlInitWithFlags(unsigned int flags)
{
    return NVML(nvmlInitWithFlags)(flags);
}

VGPU_HOOK nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory)
{
    return NVML(nvmlDeviceGetMemoryInfo)(device, memory);
}

VGPU_HOOK nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory)
{
    return NVML(nvmlDeviceGetMemoryInfo_v2)(device, memory);
}
