/* Calls the driver's management library. Its functions are weak: a preloaded libdcmi.so provides them, or they
 * are null. */
#include "dcmi.h"

#include "c_sec.h"
#include "log.h"

#pragma weak dcmi_init
#pragma weak dcmi_get_card_id_device_id_from_phyid
#pragma weak dcmi_get_device_resource_info
#pragma weak dcmi_get_device_utilization_rate
#pragma weak dcmiv2_init
#pragma weak dcmiv2_get_device_list
#pragma weak dcmiv2_get_device_utilization_rate
#pragma weak dcmiv2_get_device_proc_mem_info
#include "dcmi_api.h"

enum { MOST_PROCESSES = 64, MOST_DEVICES = 64, TOO_MANY = -8005, AICORE = 2, WHOLE_NPU = 13 };

int dcmi_find(enum soc soc, unsigned int physical_id, struct device *device)
{
    int devices[MOST_DEVICES], count = 0, code;

    device->soc = soc;
    if (soc != SOC_950) {
        code = dcmi_init();
        return code != 0 ? code : dcmi_get_card_id_device_id_from_phyid(&device->card, &device->chip, physical_id);
    }
    code = dcmiv2_init();
    if (code == 0)
        code = dcmiv2_get_device_list(devices, &count, MOST_DEVICES);
    device->logic = devices[0]; /* the container has one device, whatever its physical id is */
    return code;
}

int dcmi_memory_used(const struct device *device, size_t *bytes)
{
    struct dcmi_proc_mem_info processes[MOST_PROCESSES];
    int count = 0, code;

    memset_s(processes, sizeof processes, 0, sizeof processes);
    if (device->soc == SOC_950)
        code = dcmiv2_get_device_proc_mem_info(device->logic, processes, &count);
    else
        code = dcmi_get_device_resource_info(device->card, device->chip, processes, &count);
    if (code == 0 && count > MOST_PROCESSES)
        code = TOO_MANY;
    if (code != 0) {
        LOG_ERROR("get info failed card:%d device:%d result:%d, %d processes", device->card, device->chip, code, count);
        return code;
    }
    *bytes = 0;
    for (int i = 0; i < count; i++)
        *bytes += processes[i].proc_mem_usage;
    return 0;
}

int dcmi_utilization(const struct device *device, unsigned int *percent)
{
    if (device->soc == SOC_950)
        return dcmiv2_get_device_utilization_rate(device->logic, WHOLE_NPU, percent);
    return dcmi_get_device_utilization_rate(device->card, device->chip, device->soc == SOC_310 ? AICORE : WHOLE_NPU,
                                            percent);
}
