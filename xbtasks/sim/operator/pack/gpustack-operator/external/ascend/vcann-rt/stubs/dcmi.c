/* A stand-in of the driver's libdcmi.so for the linker. Every use of it is weak, so it never becomes NEEDED. */
#include "dcmi_api.h"

#define EXPORTED __attribute__((visibility("default")))
enum { NOT_INITIALISED = -8005 };

EXPORTED int dcmi_init(void)
{
    return NOT_INITIALISED;
}

EXPORTED int dcmi_get_card_id_device_id_from_phyid(int *card, int *device, unsigned int physical_id)
{
    (void)card, (void)device, (void)physical_id;
    return NOT_INITIALISED;
}

EXPORTED int dcmi_get_device_resource_info(int card, int device, struct dcmi_proc_mem_info *processes, int *count)
{
    (void)card, (void)device, (void)processes, (void)count;
    return NOT_INITIALISED;
}

EXPORTED int dcmi_get_device_utilization_rate(int card, int device, int kind, unsigned int *rate)
{
    (void)card, (void)device, (void)kind, (void)rate;
    return NOT_INITIALISED;
}

EXPORTED int dcmiv2_init(void)
{
    return NOT_INITIALISED;
}

EXPORTED int dcmiv2_get_device_list(int *devices, int *count, int capacity)
{
    (void)devices, (void)count, (void)capacity;
    return NOT_INITIALISED;
}

EXPORTED int dcmiv2_get_device_utilization_rate(int device, int kind, unsigned int *rate)
{
    (void)device, (void)kind, (void)rate;
    return NOT_INITIALISED;
}

EXPORTED int dcmiv2_get_device_proc_mem_info(int device, struct dcmi_proc_mem_info *processes, int *count)
{
    (void)device, (void)processes, (void)count;
    return NOT_INITIALISED;
}
