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

enum { DCMI_ABSENT = -1 };

/* These return 0, DCMI_ABSENT where no libdcmi is loaded, or the driver's own negative code. */
int dcmi_find(enum soc soc, unsigned int physical_id, struct device *device);
int dcmi_memory_used(const struct device *device, size_t *bytes);
int dcmi_utilization(const struct device *device, unsigned int *percent);

#endif
