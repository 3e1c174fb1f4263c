/* The device management interface of the host's driver: DCMI, and DCMI v2 on chips of the 950 generation. */
#ifndef VRUNTIME_DCMI_API_H
#define VRUNTIME_DCMI_API_H

struct dcmi_proc_mem_info {
    int proc_id;
    unsigned long proc_mem_usage;
};

int dcmi_init(void);
int dcmi_get_card_id_device_id_from_phyid(int *card, int *device, unsigned int physical_id);
int dcmi_get_device_resource_info(int card, int device, struct dcmi_proc_mem_info *processes, int *count);
int dcmi_get_device_utilization_rate(int card, int device, int kind, unsigned int *rate);

int dcmiv2_init(void);
int dcmiv2_get_device_list(int *devices, int *count, int capacity);
int dcmiv2_get_device_utilization_rate(int device, int kind, unsigned int *rate);
int dcmiv2_get_device_proc_mem_info(int device, struct dcmi_proc_mem_info *processes, int *count);

#endif
