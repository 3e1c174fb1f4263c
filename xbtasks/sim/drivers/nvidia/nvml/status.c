/* How a card is: memory, load, modes, power. */
#include "handles.h"

enum { IDLE_WATTS_SHARE = 20, IDLE_CELSIUS = 33, BUSY_CELSIUS = 62, STATE_IDLE = 8, STATE_BUSY = 0 };

/* A card without memory of its own has none to report. */
static nvmlReturn_t memory_of(nvmlDevice_t device, const void *place, nvmlMemory_v2_t *memory)
{
    nvmlReturn_t result = nvml_check(device, place);
    uint64_t used;

    if (result != NVML_SUCCESS)
        return result;
    if (device->card.unified)
        return NVML_ERROR_NOT_SUPPORTED;
    result = nvml_result(node_tell(&used, "memory\t%u", device->card.index));
    if (result == NVML_SUCCESS) {
        memory->total = device->card.memory;
        memory->reserved = device->card.reserved;
        memory->used = used;
        memory->free = memory->total - memory->reserved - used;
    }
    return result;
}

NVML_API nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory)
{
    if (memory != NULL && memory->version != NVML_MEMORY_V2)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    return memory_of(device, memory, memory);
}

/* The first version counts as used what the driver keeps for itself. */
NVML_API nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory)
{
    nvmlMemory_v2_t whole;
    nvmlReturn_t result = memory_of(device, memory, &whole);

    if (result == NVML_SUCCESS)
        *memory = (nvmlMemory_t){whole.total, whole.free, whole.used + whole.reserved};
    return result;
}

static nvmlReturn_t load_of(nvmlDevice_t device, const void *place, unsigned int *percent)
{
    nvmlReturn_t result = nvml_check(device, place);
    uint64_t load;

    if (result == NVML_SUCCESS)
        result = nvml_result(node_tell(&load, "load\t%u", device->card.index));
    if (result == NVML_SUCCESS)
        *percent = (unsigned int)load;
    return result;
}

NVML_API nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *rates)
{
    unsigned int load;
    nvmlReturn_t result = load_of(device, rates, &load);

    if (result == NVML_SUCCESS && device->card.mig == MIG_ON)
        return NVML_ERROR_NOT_SUPPORTED;
    if (result == NVML_SUCCESS)
        *rates = (nvmlUtilization_t){load, 0};
    return result;
}

NVML_API nvmlReturn_t nvmlDeviceGetPersistenceMode(nvmlDevice_t device, int *mode)
{
    nvmlReturn_t result = nvml_check(device, mode);

    if (result == NVML_SUCCESS)
        *mode = device->card.persistence;
    return result;
}

NVML_API nvmlReturn_t nvmlDeviceGetComputeMode(nvmlDevice_t device, int *mode)
{
    nvmlReturn_t result = nvml_check(device, mode);

    if (result == NVML_SUCCESS)
        *mode = 0;
    return result;
}

NVML_API nvmlReturn_t nvmlDeviceGetDisplayActive(nvmlDevice_t device, int *active)
{
    nvmlReturn_t result = nvml_check(device, active);

    if (result == NVML_SUCCESS)
        *active = 0;
    return result;
}

NVML_API nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned int *current, unsigned int *pending)
{
    nvmlReturn_t result = nvml_check(device, current);

    if (result != NVML_SUCCESS)
        return result;
    if (pending == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (device->card.mig == MIG_ABSENT)
        return NVML_ERROR_NOT_SUPPORTED;
    *current = *pending = device->card.mig == MIG_ON;
    return NVML_SUCCESS;
}

NVML_API nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t device, unsigned int *count)
{
    nvmlReturn_t result = nvml_check(device, count);

    if (result == NVML_SUCCESS)
        *count = device->card.mig == MIG_ABSENT ? 0 : 7;
    return result;
}

NVML_API nvmlReturn_t nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t device, unsigned int *milliwatts)
{
    nvmlReturn_t result = nvml_check(device, milliwatts);

    if (result == NVML_SUCCESS && device->card.unified)
        return NVML_ERROR_NOT_SUPPORTED;
    if (result == NVML_SUCCESS)
        *milliwatts = (unsigned int)device->card.power_w * 1000;
    return result;
}

NVML_API nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned int *milliwatts)
{
    unsigned int load;
    nvmlReturn_t result = load_of(device, milliwatts, &load);

    if (result == NVML_SUCCESS) {
        unsigned int idle = (unsigned int)device->card.power_w * 1000 / IDLE_WATTS_SHARE;

        *milliwatts = idle + ((unsigned int)device->card.power_w * 1000 - idle) * load / 100;
    }
    return result;
}

NVML_API nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, int sensor, unsigned int *celsius)
{
    unsigned int load;
    nvmlReturn_t result = load_of(device, celsius, &load);

    if (result == NVML_SUCCESS && sensor != 0)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (result == NVML_SUCCESS)
        *celsius = IDLE_CELSIUS + (BUSY_CELSIUS - IDLE_CELSIUS) * load / 100;
    return result;
}

NVML_API nvmlReturn_t nvmlDeviceGetPerformanceState(nvmlDevice_t device, int *state)
{
    unsigned int load;
    nvmlReturn_t result = load_of(device, state, &load);

    if (result == NVML_SUCCESS)
        *state = load > 0 || device->card.persistence ? STATE_BUSY : STATE_IDLE;
    return result;
}
