/* Which processes use a card, and how much. Process ids are those that the host sees. */
#include "handles.h"

enum { MIG_NONE = -1 };

static nvmlReturn_t ask(struct node_answer *answer, nvmlDevice_t device, const unsigned int *count, char type)
{
    nvmlReturn_t result = nvml_check(device, count);

    if (result == NVML_SUCCESS)
        result = nvml_result(node_ask(answer, "processes\t%u\t%c", device->card.index, type));
    return result;
}

/* A caller with too little room is told how much it takes. */
static nvmlReturn_t fits(unsigned int *count, unsigned int found, const void *place)
{
    nvmlReturn_t result = NVML_SUCCESS;

    if (found > *count)
        result = NVML_ERROR_INSUFFICIENT_SIZE;
    else if (found > 0 && place == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    *count = found;
    return result;
}

static nvmlReturn_t list_v1(nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_v1_t *infos, char type)
{
    struct node_answer answer;
    nvmlReturn_t result = ask(&answer, device, count, type);

    if (result == NVML_SUCCESS)
        result = fits(count, (unsigned int)answer.count / 2, infos);
    for (unsigned int i = 0; result == NVML_SUCCESS && i < *count; i++)
        infos[i] = (nvmlProcessInfo_v1_t){(unsigned int)node_number(&answer, (int)i * 2),
                                          node_number(&answer, (int)i * 2 + 1)};
    return result;
}

static nvmlReturn_t list_v2(nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_v2_t *infos, char type)
{
    struct node_answer answer;
    nvmlReturn_t result = ask(&answer, device, count, type);

    if (result == NVML_SUCCESS)
        result = fits(count, (unsigned int)answer.count / 2, infos);
    for (unsigned int i = 0; result == NVML_SUCCESS && i < *count; i++)
        infos[i] = (nvmlProcessInfo_v2_t){(unsigned int)node_number(&answer, (int)i * 2),
                                          node_number(&answer, (int)i * 2 + 1), (unsigned int)MIG_NONE,
                                          (unsigned int)MIG_NONE};
    return result;
}

NVML_API nvmlReturn_t nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t device, unsigned int *count,
                                                           nvmlProcessInfo_v1_t *infos)
{
    return list_v1(device, count, infos, 'C');
}

NVML_API nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v2(nvmlDevice_t device, unsigned int *count,
                                                              nvmlProcessInfo_v2_t *infos)
{
    return list_v2(device, count, infos, 'C');
}

NVML_API nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned int *count,
                                                              nvmlProcessInfo_v2_t *infos)
{
    return list_v2(device, count, infos, 'C');
}

NVML_API nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses(nvmlDevice_t device, unsigned int *count,
                                                            nvmlProcessInfo_v1_t *infos)
{
    return list_v1(device, count, infos, 'G');
}

NVML_API nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v2(nvmlDevice_t device, unsigned int *count,
                                                               nvmlProcessInfo_v2_t *infos)
{
    return list_v2(device, count, infos, 'G');
}

NVML_API nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t device, unsigned int *count,
                                                               nvmlProcessInfo_v2_t *infos)
{
    return list_v2(device, count, infos, 'G');
}

NVML_API nvmlReturn_t nvmlSystemGetProcessName(unsigned int pid, char *name, unsigned int length)
{
    struct node_answer answer;
    nvmlReturn_t result = nvml_ready(NULL);

    if (result == NVML_SUCCESS && name == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (result == NVML_SUCCESS)
        result = nvml_result(node_ask(&answer, "name\t%u", pid));
    return result == NVML_SUCCESS ? nvml_text(name, length, node_text(&answer, 0)) : result;
}

static nvmlReturn_t utilization(struct node_answer *answer, nvmlDevice_t device, const void *place,
                                unsigned long long since)
{
    nvmlReturn_t result = nvml_check(device, place);

    if (result == NVML_SUCCESS)
        result = nvml_result(node_ask(answer, "utilization\t%u\t%llu", device->card.index, since));
    return result;
}

enum { SAMPLE_BUFFER = 100 };

/* One sample for each process that was busy in the last sample period. Without a buffer: its largest size. */
NVML_API nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t device, nvmlProcessUtilizationSample_t *samples,
                                                      unsigned int *count, unsigned long long since)
{
    struct node_answer answer;
    nvmlReturn_t result = utilization(&answer, device, count, since);

    if (result != NVML_SUCCESS)
        return result;
    if (samples == NULL) {
        *count = SAMPLE_BUFFER;
        return NVML_ERROR_INSUFFICIENT_SIZE;
    }
    if (answer.count == 0)
        return NVML_ERROR_NOT_FOUND;
    result = fits(count, (unsigned int)answer.count / 3, samples);
    for (unsigned int i = 0; result == NVML_SUCCESS && i < *count; i++)
        samples[i] = (nvmlProcessUtilizationSample_t){
            .pid = (unsigned int)node_number(&answer, (int)i * 3),
            .timeStamp = node_number(&answer, (int)i * 3 + 1),
            .smUtil = (unsigned int)node_number(&answer, (int)i * 3 + 2),
        };
    return result;
}

/* The newer call, which also works on cards where the older one doesn't. */
NVML_API nvmlReturn_t nvmlDeviceGetProcessesUtilizationInfo(nvmlDevice_t device,
                                                            nvmlProcessesUtilizationInfo_v1_t *info)
{
    struct node_answer answer;
    nvmlReturn_t result = nvml_check(device, info);

    if (result == NVML_SUCCESS && info->version != NVML_PROCESSES_UTILIZATION_V1)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (result == NVML_SUCCESS)
        result = nvml_result(node_ask(&answer, "busy\t%u\t%llu", device->card.index, info->lastSeenTimeStamp));
    if (result != NVML_SUCCESS)
        return result;
    if (info->procUtilArray == NULL) {
        info->processSamplesCount = SAMPLE_BUFFER;
        return NVML_ERROR_INSUFFICIENT_SIZE;
    }
    if (answer.count == 0)
        return NVML_ERROR_NOT_FOUND;
    result = fits(&info->processSamplesCount, (unsigned int)answer.count / 3, info->procUtilArray);
    for (unsigned int i = 0; result == NVML_SUCCESS && i < info->processSamplesCount; i++)
        info->procUtilArray[i] = (nvmlProcessUtilizationInfo_v1_t){
            .pid = (unsigned int)node_number(&answer, (int)i * 3),
            .timeStamp = node_number(&answer, (int)i * 3 + 1),
            .smUtil = (unsigned int)node_number(&answer, (int)i * 3 + 2),
        };
    return result;
}
