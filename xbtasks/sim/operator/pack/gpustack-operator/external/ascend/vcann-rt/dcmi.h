/* The device that the slice lies on, as the driver manages it. */
#ifndef VRUNTIME_DCMI_H
#define VRUNTIME_DCMI_H

#include <stddef.h>

#include "soc.h"

struct device {
    enum soc soc;
    int card, chip; /* DCMI */
    int logic;      /* DCMI v2 */
};

/* These return 0 or the driver's own negative code. Without a libdcmi in the process they are calls to nowhere. */
int dcmi_find(enum soc soc, unsigned int physical_id, struct device *device);

/* How many bytes of the device all processes that the driver lists hold. More than 64 of them are an error. */
int dcmi_memory_used(const struct device *device, size_t *bytes);

/* How busy the device is, in per cent. */
int dcmi_utilization(const struct device *device, unsigned int *percent);

#endif
