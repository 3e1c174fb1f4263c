/* The virtual NPU of this process: its slice and the device that it lies on. */
#ifndef VRUNTIME_VNPU_H
#define VRUNTIME_VNPU_H

#include <stddef.h>

#include "config.h"
#include "dcmi.h"

#define VNPU_CONFIG "/etc/enpu/vcann-rt/npu_info.config"
enum { VNPU_MEBIBYTE = 1 << 20 };

struct vnpu {
    struct config config;
    struct device device;
    size_t memory_quota; /* bytes */
};

/* These return 0, 1, or the driver's negative code, and log why. */
int vnpu_configure(struct vnpu *vnpu);
int vnpu_find_device(struct vnpu *vnpu, enum soc soc);

#endif
