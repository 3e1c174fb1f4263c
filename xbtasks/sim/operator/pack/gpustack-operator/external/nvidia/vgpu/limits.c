/* A limit is a number as C writes it (0x and 0 lead hexadecimal and octal ones) with a unit: the last character alone,
 * K, M or G of either case. Whatever else stands there is passed over. A limit with an index goes before the one
 * without; one that is empty, zero or no number counts as not given. */
#include "limits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"

static uint64_t unit_of(char last)
{
    switch (last) {
    case 'k':
    case 'K':
        return 1ull << 10;
    case 'm':
    case 'M':
        return 1ull << 20;
    case 'g':
    case 'G':
        return 1ull << 30;
    default:
        return 1;
    }
}

static uint64_t read_limit(const char *name, int is_memory)
{
    const char *value = getenv(name);
    uint64_t unit, number;

    if (value == NULL || *value == '\0')
        return 0;
    unit = unit_of(value[strlen(value) - 1]);
    number = strtoul(value, NULL, 0);
    if (number * unit == 0) {
        if (is_memory)
            LOG_WARN("invalid device memory limit %s=%s", name, value);
        else
            LOG_INFO("device core util limit set to 0, which means no limit: %s=%s", name, value);
        return 0;
    }
    if (number * unit / unit != number) {
        LOG_ERROR("Limit overflow: %s=%s", name, value);
        return 0;
    }
    return number * unit;
}

static void read_all(uint64_t *limits, const char *name, int is_memory, uint64_t otherwise)
{
    uint64_t general = read_limit(name, is_memory);

    if (general == 0)
        general = otherwise;
    for (int i = 0; i < VGPU_DEVICES; i++) {
        char indexed[64];

        snprintf(indexed, sizeof indexed, "%s_%d", name, i);
        limits[i] = read_limit(indexed, is_memory);
        if (limits[i] == 0)
            limits[i] = general;
    }
}

void vgpu_read_limits(struct vgpu_limits *limits)
{
    read_all(limits->memory, "CUDA_DEVICE_MEMORY_LIMIT", 1, 0);
    read_all(limits->compute, "CUDA_DEVICE_SM_LIMIT", 0, 100);
}
