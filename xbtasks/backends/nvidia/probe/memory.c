/* Taking device memory in every way that a program can, and giving it back. */
#include <stdlib.h>
#include <string.h>

#include "probe.h"

enum kind { NOTHING, ADDRESS, STREAM_ORDERED, PHYSICAL };
enum { SLOTS = 2 * CARDS, MANAGED_GLOBAL = 1, PITCH_ROW = 1 << 20 };

static struct {
    uint64_t at;
    enum kind kind;
} slots[SLOTS];

/* A size: bytes, or of the free memory that "mark" saw: room, room/2, room*3/4, room+N, room/2-N. */
static uint64_t size_of(const char *words)
{
    uint64_t size = room;
    char *end = (char *)words + strlen("room");

    if (strncmp(words, "room", strlen("room")) != 0)
        return strtoull(words, NULL, 10);
    if (*end == '*')
        size *= strtoull(end + 1, &end, 10);
    if (*end == '/')
        size /= strtoull(end + 1, &end, 10);
    if (*end == '+')
        size += strtoull(end + 1, &end, 10);
    if (*end == '-')
        size -= strtoull(end + 1, &end, 10);
    return size;
}

static int plain(uint64_t *at, uint64_t *size)
{
    return CUDA(cuMemAlloc_v2, (uint64_t *, size_t), at, *size);
}

static int looked_up(uint64_t *at, uint64_t *size)
{
    void *function = by_lookup("cuMemAlloc");

    return function == NULL ? ABSENT : ((int (*)(uint64_t *, size_t))function)(at, *size);
}

static int managed(uint64_t *at, uint64_t *size)
{
    return CUDA(cuMemAllocManaged, (uint64_t *, size_t, unsigned int), at, *size, MANAGED_GLOBAL);
}

static int pitch(uint64_t *at, uint64_t *size)
{
    size_t real = 0;

    return CUDA(cuMemAllocPitch_v2, (uint64_t *, size_t *, size_t, size_t, unsigned int), at, &real, PITCH_ROW,
                *size / PITCH_ROW, 4);
}

static int async(uint64_t *at, uint64_t *size)
{
    return CUDA(cuMemAllocAsync, (uint64_t *, size_t, void *), at, *size, NULL);
}

static int pool(uint64_t *at, uint64_t *size)
{
    void *of_device = NULL;
    int result = CUDA(cuDeviceGetDefaultMemPool, (void **, int), &of_device, device);

    if (result == 0)
        result = CUDA(cuMemAllocFromPoolAsync, (uint64_t *, size_t, void *, void *), at, *size, of_device, NULL);
    return result;
}

/* struct CUmemAllocationProp: pinned memory of the current device. */
static int physical(uint64_t *at, uint64_t *size)
{
    struct {
        int type, handles;
        struct {
            int type, id;
        } location;
        void *security;
        unsigned char flags[8];
    } wanted = {1, 0, {1, device}, NULL, {0}};
    size_t unit = 0;
    int result = CUDA(cuMemGetAllocationGranularity, (size_t *, const void *, int), &unit, &wanted, 0);

    if (result != 0)
        return result;
    *size = *size / unit * unit;
    return CUDA(cuMemCreate, (uint64_t *, size_t, const void *, unsigned long long), at, *size, &wanted, 0);
}

static const struct {
    const char *name;
    int (*take)(uint64_t *at, uint64_t *size);
    enum kind kind;
} families[] = {
    {"alloc", plain, ADDRESS},        {"getproc", looked_up, ADDRESS},   {"managed", managed, ADDRESS},
    {"pitch", pitch, ADDRESS},        {"async", async, STREAM_ORDERED},  {"pool", pool, STREAM_ORDERED},
    {"vmm", physical, PHYSICAL},
};

/* take:FAMILY:SLOT:SIZE */
void op_take(char *values)
{
    const char *family = strtok(values, ":"), *slot = strtok(NULL, ":"), *words = strtok(NULL, ":");
    int result = ABSENT, place = slot == NULL ? 0 : atoi(slot) % SLOTS;
    uint64_t at = 0, size = words == NULL ? 0 : size_of(words);

    for (size_t i = 0; family != NULL && i < sizeof families / sizeof *families; i++) {
        if (strcmp(family, families[i].name) != 0)
            continue;
        result = families[i].take(&at, &size);
        if (result == 0) {
            slots[place].at = at;
            slots[place].kind = families[i].kind;
        }
    }
    put("\"rc\":%d,\"size\":%llu", result, (unsigned long long)size);
}

/* give:SLOT: gives back what the slot holds, and waits until the device has it. An empty slot is well. */
void op_give(const char *slot)
{
    int place = atoi(slot) % SLOTS, result = 0;
    enum kind kind = slots[place].kind;

    slots[place].kind = NOTHING;
    switch (kind) {
    case NOTHING:
        break;
    case ADDRESS:
        result = CUDA(cuMemFree_v2, (uint64_t), slots[place].at);
        break;
    case STREAM_ORDERED:
        result = CUDA(cuMemFreeAsync, (uint64_t, void *), slots[place].at, NULL);
        break;
    case PHYSICAL:
        result = CUDA(cuMemRelease, (uint64_t), slots[place].at);
        break;
    }
    if (result == 0 && kind != NOTHING)
        result = CUDA(cuCtxSynchronize, (void), );
    put("\"rc\":%d", result);
}
