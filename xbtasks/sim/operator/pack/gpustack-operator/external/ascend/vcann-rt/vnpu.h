/* The virtual NPU of this process: its slice and the device that it lies on. */
#ifndef VRUNTIME_VNPU_H
#define VRUNTIME_VNPU_H

#include "config.h"
#include "dcmi.h"

#define VNPU_CONFIG "/etc/enpu/vcann-rt/npu_info.config"
enum { VNPU_INIT_FAILED = 100001 };

struct vnpu {
    struct config config;
    struct device device;
};

/* Reads the slice and finds its device, once. Returns 0 or VNPU_INIT_FAILED. */
int vnpu_start(void);

#endif
