/* Utilization of a device by process: with the older call of NVML where the device has it, else with the newer. */
#define _POSIX_C_SOURCE 200809L
#include "utilization.h"

#include <time.h>

#include "driver.h"
#include "real.h"
#include "region.h"

enum { SAMPLES = 256 };

static unsigned long long a_second_ago(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (unsigned long long)(now.tv_sec - 1) * 1000000 + (unsigned long long)now.tv_nsec / 1000;
}

static int ask_newer(nvmlDevice_t device, unsigned int *percent)
{
    nvmlProcessUtilizationInfo_v1_t samples[SAMPLES];
    nvmlProcessesUtilizationInfo_v1_t request = {
        .version = (unsigned int)(sizeof request | 1 << 24),
        .processSamplesCount = SAMPLES,
        .lastSeenTimeStamp = a_second_ago(),
        .procUtilArray = samples,
    };
    nvmlReturn_t result = NVML(nvmlDeviceGetProcessesUtilizationInfo)(device, &request);

    for (unsigned int i = 0; result == NVML_SUCCESS && i < request.processSamplesCount; i++)
        if (vgpu_is_ours((int)samples[i].pid))
            *percent += samples[i].smUtil;
    return result != NVML_ERROR_NOT_SUPPORTED && result != NVML_ERROR_FUNCTION_NOT_FOUND;
}

int vgpu_utilization(int number, unsigned int *percent)
{
    nvmlProcessUtilizationSample_t samples[SAMPLES];
    unsigned int count = SAMPLES;
    nvmlDevice_t device;
    nvmlReturn_t result = NVML(nvmlDeviceGetHandleByIndex_v2)((unsigned int)number, &device);

    *percent = 0;
    if (result != NVML_SUCCESS)
        return 0;
    result = NVML(nvmlDeviceGetProcessUtilization)(device, samples, &count, a_second_ago());
    if (result == NVML_ERROR_NOT_SUPPORTED)
        return ask_newer(device, percent);
    for (unsigned int i = 0; result == NVML_SUCCESS && i < count; i++)
        if (vgpu_is_ours((int)samples[i].pid))
            *percent += samples[i].smUtil;
    return 1; /* no sample: it wasn't busy */
}
