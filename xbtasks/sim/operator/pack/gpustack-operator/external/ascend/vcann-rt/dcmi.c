/* Calls the driver's management library. Its functions are weak: a preloaded libdcmi.so provides them, or they
 * are null. */
#include "dcmi.h"

#pragma weak dcmi_init
#pragma weak dcmi_get_card_id_device_id_from_phyid
#pragma weak dcmi_get_device_resource_info
#pragma weak dcmi_get_device_utilization_rate
#pragma weak dcmiv2_init
#pragma weak dcmiv2_get_device_list
#pragma weak dcmiv2_get_device_utilization_rate
#pragma weak dcmiv2_get_device_proc_mem_info
#include "dcmi_api.h"

enum { MOST_PROCESSES = 64, MOST_DEVICES = 64, AICORE_UTILIZATION = 2 };

static int find_v1(unsigned int physical_id, struct device *device)
{
    int code;

    if (dcmi_init == NULL || dcmi_get_card_id_device_id_from_phyid == NULL)
        return DCMI_ABSENT;
    code = dcmi_init();
    return code != 0 ? code : dcmi_get_card_id_device_id_from_phyid(&device->card, &device->chip, physical_id);
}

static int find_v2(unsigned int physical_id, struct device *device)
{
    int devices[MOST_DEVICES], count = 0, code;

    if (dcmiv2_init == NULL || dcmiv2_get_device_list == NULL)
        return DCMI_ABSENT;
    code = dcmiv2_init();
    if (code == 0)
        code = dcmiv2_get_device_list(devices, &count, MOST_DEVICES);
    if (code == 0)
        device->logic = physical_id < (unsigned int)count ? devices[physical_id] : (int)physical_id;
    return code;
}

int dcmi_find(enum soc soc, unsigned int physical_id, struct device *device)
{
    device->soc = soc;
    return soc == SOC_950 ? find_v2(physical_id, device) : find_v1(physical_id, device);
}

int dcmi_memory_used(const struct device *device, size_t *bytes)
{
    struct dcmi_proc_mem_info processes[MOST_PROCESSES];
    int count = MOST_PROCESSES, code = DCMI_ABSENT;

    if (device->soc == SOC_950 && dcmiv2_get_device_proc_mem_info != NULL)
        code = dcmiv2_get_device_proc_mem_info(device->logic, processes, &count);
    else if (device->soc != SOC_950 && dcmi_get_device_resource_info != NULL)
        code = dcmi_get_device_resource_info(device->card, device->chip, processes, &count);
    if (code != 0)
        return code;
    *bytes = 0;
    for (int i = 0; i < count && i < MOST_PROCESSES; i++)
        *bytes += processes[i].proc_mem_usage;
    return 0;
}

int dcmi_utilization(const struct device *device, unsigned int *percent)
{
    if (device->soc == SOC_950)
        return dcmiv2_get_device_utilization_rate == NULL
                   ? DCMI_ABSENT
                   : dcmiv2_get_device_utilization_rate(device->logic, AICORE_UTILIZATION, percent);
    return dcmi_get_device_utilization_rate == NULL
               ? DCMI_ABSENT
               : dcmi_get_device_utilization_rate(device->card, device->chip, AICORE_UTILIZATION, percent);
}
