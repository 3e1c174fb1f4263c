/* The device management interface: its types and return codes, as far as vcann-rt uses them. */
#ifndef SIM_DCMI_H
#define SIM_DCMI_H

#define DCMI_API __attribute__((visibility("default")))

enum {
    DCMI_OK = 0,
    DCMI_ERR_CODE_INVALID_PARAMETER = -8001,
    DCMI_ERR_CODE_OPER_NOT_PERMITTED = -8002,
    DCMI_ERR_CODE_INNER_ERR = -8005,
    DCMI_ERR_CODE_NOT_READY = -8012,
    DCMI_ERR_CODE_RESOURCE_OCCUPIED = -8020,
    DCMI_ERR_CODE_NOT_SUPPORT = -8255,
};

/* The kinds of utilization that can be asked for. */
enum { DCMI_UTILIZATION_HBM = 6, DCMI_UTILIZATION_AICORE = 2, DCMI_UTILIZATION_NPU = 13 };

/* How many entries callers have room for. */
enum { DCMI_MOST_PROCESSES = 64 };

struct dcmi_proc_mem_info {
    int proc_id;
    unsigned long proc_mem_usage; /* bytes */
};

DCMI_API int dcmi_init(void);
DCMI_API int dcmi_get_card_id_device_id_from_phyid(int *card, int *device, unsigned int phy_id);
DCMI_API int dcmi_get_card_id_device_id_from_logicid(int *card, int *device, unsigned int logic_id);
DCMI_API int dcmi_get_device_resource_info(int card, int device, struct dcmi_proc_mem_info *processes, int *count);
DCMI_API int dcmi_get_device_utilization_rate(int card, int device, int kind, unsigned int *rate);
DCMI_API int dcmi_get_device_share_enable(int card, int device, int *enabled);
DCMI_API int dcmi_set_device_share_enable(int card, int device, int enabled);

/* The second series, for the 950 generation: a device is named by its logic id alone. */
DCMI_API int dcmiv2_init(void);
DCMI_API int dcmiv2_get_device_list(int *devices, int *count, int capacity);
DCMI_API int dcmiv2_get_device_utilization_rate(int device, int kind, unsigned int *rate);
DCMI_API int dcmiv2_get_device_proc_mem_info(int device, struct dcmi_proc_mem_info *processes, int *count);

#endif
