/* What the driver and NVML say of the cards. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probe.h"

int device;
uint64_t room;

static void put_absent(const char *why)
{
    put("\"rc\":%d,\"why\":", ABSENT);
    put_string(why == NULL ? "" : why);
}

static void put_uuid(const unsigned char *id)
{
    put("\"GPU-");
    for (int i = 0; i < 16; i++)
        put("%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", id[i]);
    put("\"");
}

/* init: opens the driver, and lists the devices with their totals. */
void op_init(void)
{
    int result, count = 0, version = 0;

    driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (driver == NULL) {
        put_absent(dlerror());
        return;
    }
    result = CUDA(cuInit, (unsigned int), 0);
    CUDA(cuDriverGetVersion, (int *), &version);
    if (result == 0)
        result = CUDA(cuDeviceGetCount, (int *), &count);
    put("\"rc\":%d,\"version\":%d,\"devices\":[", result, version);
    for (int i = 0; i < count && i < CARDS; i++) {
        unsigned char id[16] = {0};
        size_t total = 0;
        int named = CUDA(cuDeviceGetUuid_v2, (void *, int), id, i), sized;

        if (named == ABSENT)
            named = CUDA(cuDeviceGetUuid, (void *, int), id, i);
        sized = CUDA(cuDeviceTotalMem_v2, (size_t *, int), &total, i);
        put("%s{\"uuid_rc\":%d,\"uuid\":", i > 0 ? "," : "", named);
        put_uuid(id);
        put(",\"total_rc\":%d,\"total\":%zu}", sized, total);
    }
    put("]");
}

/* device:N: makes the primary context of device N current. */
void op_device(const char *number)
{
    void *context = NULL;
    int result;

    device = atoi(number);
    result = CUDA(cuDevicePrimaryCtxRetain, (void **, int), &context, device);
    if (result == 0)
        result = CUDA(cuCtxSetCurrent, (void *), context);
    put("\"rc\":%d,\"device\":%d", result, device);
}

static void put_memory(const char *name, int result, size_t available, size_t total)
{
    put(",\"%s\":{\"rc\":%d,\"free\":%zu,\"total\":%zu}", name, result, available, total);
}

static void put_looked_up(const char *name, void *function)
{
    size_t available = 0, total = 0;
    int result = function == NULL ? ABSENT : ((int (*)(size_t *, size_t *))function)(&available, &total);

    put_memory(name, result, available, total);
}

/* info: the memory of the current device, asked for in every way. */
void op_info(void)
{
    size_t available = 0, total = 0;
    void *function;
    int result = CUDA(cuMemGetInfo_v2, (size_t *, size_t *), &available, &total);

    put("\"rc\":0");
    put_memory("dlsym", result, available, total);
    put_looked_up("lookup", by_lookup("cuMemGetInfo"));
    put_looked_up("lookup_old", by_old_lookup("cuMemGetInfo"));
    put_looked_up("lookup_second", by_second_lookup("cuMemGetInfo"));
    total = 0;
    function = by_lookup("cuDeviceTotalMem");
    result = function == NULL ? ABSENT : ((int (*)(size_t *, int))function)(&total, device);
    put_memory("lookup_total", result, 0, total);
}

/* mark:MOST:OTHERWISE: remembers the free memory as "room"; OTHERWISE where that is more than MOST. */
void op_mark(char *values)
{
    uint64_t most = strtoull(values, &values, 10), otherwise = strtoull(values + (*values == ':'), NULL, 10);
    size_t available = 0, total = 0;
    int result = CUDA(cuMemGetInfo_v2, (size_t *, size_t *), &available, &total);

    room = result == 0 && available <= most ? available : otherwise;
    put("\"rc\":%d,\"free\":%zu,\"total\":%zu,\"size\":%llu", result, available, total, (unsigned long long)room);
}

struct memory_v1 {
    unsigned long long total, available, used;
};

struct memory_v2 {
    unsigned int version;
    unsigned long long total, reserved, available, used;
};

static void put_card(unsigned int index)
{
    struct memory_v1 v1 = {0};
    struct memory_v2 v2 = {.version = (unsigned int)sizeof v2 | 2u << 24};
    char uuid[96] = "";
    void *card = NULL;
    unsigned int samples = 0;
    int result = NVML(nvmlDeviceGetHandleByIndex_v2, (unsigned int, void **), index, &card);

    if (result == 0)
        result = NVML(nvmlDeviceGetUUID, (void *, char *, unsigned int), card, uuid, sizeof uuid);
    put("{\"rc\":%d,\"uuid\":", result);
    put_string(uuid);
    result = NVML(nvmlDeviceGetMemoryInfo, (void *, struct memory_v1 *), card, &v1);
    put(",\"v1\":{\"rc\":%d,\"total\":%llu,\"free\":%llu,\"used\":%llu}", result, v1.total, v1.available, v1.used);
    result = NVML(nvmlDeviceGetMemoryInfo_v2, (void *, struct memory_v2 *), card, &v2);
    put(",\"v2\":{\"rc\":%d,\"total\":%llu,\"free\":%llu,\"used\":%llu}", result, v2.total, v2.available, v2.used);
    result = NVML(nvmlDeviceGetProcessUtilization, (void *, void *, unsigned int *, unsigned long long), card, NULL,
                  &samples, 0);
    put(",\"utilization\":%d}", result);
}

/* nvml: the memory of every card by both calls, and whether NVML tells what a process takes of a card. */
void op_nvml(void)
{
    unsigned int count = 0;
    int result;

    nvml = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    if (nvml == NULL) {
        put_absent(dlerror());
        return;
    }
    result = NVML(nvmlInit_v2, (void), );
    if (result == 0)
        result = NVML(nvmlDeviceGetCount_v2, (unsigned int *), &count);
    put("\"rc\":%d,\"cards\":[", result);
    for (unsigned int i = 0; i < count && i < CARDS; i++) {
        put("%s", i > 0 ? "," : "");
        put_card(i);
    }
    put("]");
}

/* maps:PATH: whether the dynamic loader has mapped that file into this process. */
void op_maps(const char *path)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[4352];
    int mapped = 0;

    if (maps == NULL) {
        put_absent("/proc/self/maps");
        return;
    }
    while (fgets(line, sizeof line, maps) != NULL) {
        char *file = strchr(line, '/');

        line[strcspn(line, "\n")] = '\0';
        mapped |= file != NULL && strcmp(file, path) == 0;
    }
    fclose(maps);
    put("\"rc\":0,\"mapped\":%s", mapped ? "true" : "false");
}
