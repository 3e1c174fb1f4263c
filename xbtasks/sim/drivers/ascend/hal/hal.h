/* The hardware abstraction layer of the driver: what the toolkit's runtime calls. */
#ifndef SIM_HAL_H
#define SIM_HAL_H

#include <stdint.h>

#define HAL_API __attribute__((visibility("default")))

typedef enum {
    DRV_ERROR_NONE = 0,
    DRV_ERROR_NO_DEVICE = 1,
    DRV_ERROR_INVALID_DEVICE = 2,
    DRV_ERROR_INVALID_VALUE = 3,
    DRV_ERROR_OUT_OF_MEMORY = 6,
    DRV_ERROR_RESOURCE_OCCUPIED = 87,
} drvError_t;

/* Memory is taken in pages of this size. */
enum { HAL_PAGE = 2 << 20 };

struct hal_memory {
    uint64_t total, available;
};

HAL_API drvError_t drvGetDevNum(uint32_t *count);
HAL_API drvError_t halGetSocVersion(uint32_t device, char *name, uint32_t size);

/* A context of this process on a device: its memory is the process's. */
HAL_API drvError_t drvDeviceOpen(uint32_t device);
HAL_API drvError_t drvDeviceClose(uint32_t device);

HAL_API drvError_t halMemAlloc(void **pointer, uint64_t size, uint32_t device);
HAL_API drvError_t halMemFree(void *pointer);
HAL_API drvError_t halMemGetInfo(uint32_t device, struct hal_memory *memory);

/* Queues work that takes the device some nanoseconds; `end` is when it is done (monotonic clock). */
HAL_API drvError_t halSqTaskSend(uint32_t device, uint64_t nanoseconds, uint64_t *end);

#endif
