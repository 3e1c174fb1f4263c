/* What a device is: name, UUID, memory, attributes. */
#include <stdio.h>
#include <string.h>

#include "state.h"

enum attribute {
    MAX_THREADS_PER_BLOCK = 1,
    MAX_BLOCK_DIM_X = 2,
    MAX_BLOCK_DIM_Y = 3,
    MAX_BLOCK_DIM_Z = 4,
    MAX_GRID_DIM_X = 5,
    MAX_GRID_DIM_Y = 6,
    MAX_GRID_DIM_Z = 7,
    WARP_SIZE = 10,
    CLOCK_RATE = 13,
    MULTIPROCESSOR_COUNT = 16,
    INTEGRATED = 18,
    COMPUTE_MODE = 20,
    PCI_BUS_ID = 33,
    PCI_DEVICE_ID = 34,
    MAX_THREADS_PER_MULTIPROCESSOR = 39,
    UNIFIED_ADDRESSING = 41,
    PCI_DOMAIN_ID = 50,
    COMPUTE_CAPABILITY_MAJOR = 75,
    COMPUTE_CAPABILITY_MINOR = 76,
    MANAGED_MEMORY = 83,
    CONCURRENT_MANAGED_ACCESS = 89,
    VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED = 102,
    MAX_BLOCKS_PER_MULTIPROCESSOR = 106,
    MEMORY_POOLS_SUPPORTED = 115,
};

static CUresult check(const void *place, CUdevice device)
{
    CUresult result = cuda_ready();

    if (result != CUDA_SUCCESS)
        return result;
    if (cuda_device(device) == NULL)
        return CUDA_ERROR_INVALID_DEVICE;
    return place == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUDA_API CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    CUresult result = check(device, ordinal);

    if (result == CUDA_SUCCESS)
        *device = ordinal;
    return result;
}

CUDA_API CUresult cuDeviceGetCount(int *count)
{
    CUresult result = cuda_ready();

    if (result != CUDA_SUCCESS)
        return result;
    if (count == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    for (*count = 0; cuda_device(*count) != NULL;)
        ++*count;
    return CUDA_SUCCESS;
}

CUDA_API CUresult cuDeviceGetName(char *name, int length, CUdevice device)
{
    CUresult result = check(name, device);

    if (result == CUDA_SUCCESS && length < 1)
        return CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        snprintf(name, (size_t)length, "%s", cuda_device(device)->card.name);
    return result;
}

static int digit(char c)
{
    return c <= '9' ? c - '0' : (c | 32) - 'a' + 10;
}

CUDA_API CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device)
{
    CUresult result = check(uuid, device);
    const char *text;
    int place = 0;

    if (result != CUDA_SUCCESS)
        return result;
    memset(uuid, 0, sizeof *uuid);
    for (text = cuda_device(device)->card.uuid + strlen("GPU-"); text[0] != '\0' && text[1] != '\0' && place < 16;)
        if (*text == '-') {
            text++;
        } else {
            uuid->bytes[place++] = (char)(digit(text[0]) * 16 + digit(text[1]));
            text += 2;
        }
    return CUDA_SUCCESS;
}

CUDA_API CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device)
{
    return cuDeviceGetUuid_v2(uuid, device);
}

/* CUDA counts what programs can have: NVML's total less what the driver keeps for itself. */
CUDA_API CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
    CUresult result = check(bytes, device);

    if (result == CUDA_SUCCESS)
        *bytes = cuda_device(device)->card.memory - cuda_device(device)->card.reserved;
    return result;
}

static CUresult attribute_of(const struct sim_card *card, int attribute, int *value)
{
    switch ((enum attribute)attribute) {
    case MAX_THREADS_PER_BLOCK:
    case MAX_BLOCK_DIM_X:
    case MAX_BLOCK_DIM_Y:
        *value = 1024;
        return CUDA_SUCCESS;
    case MAX_BLOCK_DIM_Z:
        *value = 64;
        return CUDA_SUCCESS;
    case MAX_GRID_DIM_X:
        *value = 2147483647;
        return CUDA_SUCCESS;
    case MAX_GRID_DIM_Y:
    case MAX_GRID_DIM_Z:
        *value = 65535;
        return CUDA_SUCCESS;
    case WARP_SIZE:
        *value = 32;
        return CUDA_SUCCESS;
    case CLOCK_RATE:
        *value = card->clock_mhz * 1000;
        return CUDA_SUCCESS;
    case MULTIPROCESSOR_COUNT:
        *value = card->multiprocessors;
        return CUDA_SUCCESS;
    case INTEGRATED:
        *value = card->unified;
        return CUDA_SUCCESS;
    case COMPUTE_MODE:
    case PCI_DEVICE_ID:
    case PCI_DOMAIN_ID:
        *value = 0;
        return CUDA_SUCCESS;
    case PCI_BUS_ID:
        *value = digit(card->bus[9]) * 16 + digit(card->bus[10]);
        return CUDA_SUCCESS;
    case MAX_THREADS_PER_MULTIPROCESSOR:
        *value = card->threads;
        return CUDA_SUCCESS;
    case COMPUTE_CAPABILITY_MAJOR:
        *value = card->major;
        return CUDA_SUCCESS;
    case COMPUTE_CAPABILITY_MINOR:
        *value = card->minor;
        return CUDA_SUCCESS;
    case MAX_BLOCKS_PER_MULTIPROCESSOR:
        *value = card->blocks;
        return CUDA_SUCCESS;
    case UNIFIED_ADDRESSING:
    case MANAGED_MEMORY:
    case CONCURRENT_MANAGED_ACCESS:
    case VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
    case MEMORY_POOLS_SUPPORTED:
        *value = 1;
        return CUDA_SUCCESS;
    }
    return CUDA_ERROR_INVALID_VALUE;
}

CUDA_API CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice device)
{
    CUresult result = check(value, device);

    return result == CUDA_SUCCESS ? attribute_of(&cuda_device(device)->card, attribute, value) : result;
}

CUDA_API CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice device)
{
    CUresult result = check(major, device);

    if (result == CUDA_SUCCESS && minor == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) {
        *major = cuda_device(device)->card.major;
        *minor = cuda_device(device)->card.minor;
    }
    return result;
}

/* CUDA writes the PCI domain with four digits, NVML with eight. */
CUDA_API CUresult cuDeviceGetPCIBusId(char *bus, int length, CUdevice device)
{
    CUresult result = check(bus, device);

    if (result == CUDA_SUCCESS && length < 13)
        return CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        snprintf(bus, (size_t)length, "%s", cuda_device(device)->card.bus + 4);
    return result;
}

CUDA_API CUresult cuDeviceGetByPCIBusId(CUdevice *device, const char *bus)
{
    CUresult result = check(device, 0);

    if (result != CUDA_SUCCESS || bus == NULL)
        return result == CUDA_SUCCESS ? CUDA_ERROR_INVALID_VALUE : result;
    for (CUdevice i = 0; cuda_device(i) != NULL; i++)
        if (strcmp(cuda_device(i)->card.bus + 4, bus) == 0 || strcmp(cuda_device(i)->card.bus, bus) == 0) {
            *device = i;
            return CUDA_SUCCESS;
        }
    return CUDA_ERROR_INVALID_DEVICE;
}

CUDA_API CUresult cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer)
{
    CUresult result = check(can, device);

    if (result == CUDA_SUCCESS && cuda_device(peer) == NULL)
        return CUDA_ERROR_INVALID_DEVICE;
    if (result == CUDA_SUCCESS)
        *can = 0;
    return result;
}
