/* NVML lists processes by the host's numbers. The one that appears in the list when this process makes a context is
 * this process; how much it uses then is what a context costs. */
#include "hostpid.h"

#include "context.h"
#include "driver.h"
#include "log.h"
#include "real.h"
#include "region.h"

enum { LISTED = 512 };

/* Lists the processes on the first device; tells whether it could. */
static int list(nvmlProcessInfo_v1_t *infos, unsigned int *count)
{
    nvmlDevice_t device;
    nvmlReturn_t result = NVML(nvmlDeviceGetHandleByIndex_v2)(0, &device);

    *count = LISTED;
    if (result == NVML_SUCCESS)
        result = NVML(nvmlDeviceGetComputeRunningProcesses)(device, count, infos);
    return result == NVML_SUCCESS;
}

static const nvmlProcessInfo_v1_t *appeared(const nvmlProcessInfo_v1_t *before, unsigned int count_before,
                                            const nvmlProcessInfo_v1_t *after, unsigned int count_after)
{
    for (unsigned int i = 0; i < count_after; i++) {
        unsigned int j = 0;

        while (j < count_before && before[j].pid != after[i].pid)
            j++;
        if (j == count_before)
            return &after[i];
    }
    return NULL;
}

static int find(void)
{
    nvmlProcessInfo_v1_t before[LISTED], after[LISTED];
    const nvmlProcessInfo_v1_t *own = NULL;
    unsigned int count_before, count_after;
    CUcontext context;

    if (!list(before, &count_before) || CUDA(cuDevicePrimaryCtxRetain)(&context, 0) != CUDA_SUCCESS)
        return 0;
    if (list(after, &count_after))
        own = appeared(before, count_before, after, count_after);
    CUDA(cuDevicePrimaryCtxRelease_v2)(0);
    if (own == NULL) {
        LOG_ERROR("host pid is error!");
        return 0;
    }
    LOG_INFO("hostPid=%u", own->pid);
    LOG_INFO("Primary Context Size==%llu", own->usedGpuMemory);
    vgpu_set_host_pid((int)own->pid);
    vgpu_set_context_size(own->usedGpuMemory);
    return 1;
}

int vgpu_find_host_pid(void)
{
    int found;

    if (NVML(nvmlInit_v2)() != NVML_SUCCESS)
        return 0;
    vgpu_quiet_begin();
    found = find();
    vgpu_quiet_end();
    return found;
}
