/* A card's facts, as NVML tells them. */
#include <stdlib.h>
#include <string.h>

#include "smi.h"

static struct reading number(nvmlReturn_t result, unsigned long long value)
{
    return (struct reading){result, result == NVML_SUCCESS ? value : 0};
}

static void read_memory(const struct calls *nvml, struct smi_card *card)
{
    nvmlMemory_v2_t memory = {.version = NVML_MEMORY_V2};
    nvmlReturn_t result = nvml->nvmlDeviceGetMemoryInfo_v2(card->device, &memory);

    card->total = number(result, memory.total);
    card->used = number(result, memory.used);
    card->available = number(result, memory.free);
    card->reserved = number(result, memory.reserved);
}

static void read_state(const struct calls *nvml, struct smi_card *card)
{
    nvmlUtilization_t rates = {0, 0};
    unsigned int value = 0, pending = 0;
    int state = 0;
    nvmlReturn_t result = nvml->nvmlDeviceGetUtilizationRates(card->device, &rates);

    card->load = number(result, rates.gpu);
    result = nvml->nvmlDeviceGetPowerUsage(card->device, &value);
    card->power = number(result, value);
    result = nvml->nvmlDeviceGetEnforcedPowerLimit(card->device, &value);
    card->power_limit = number(result, value);
    result = nvml->nvmlDeviceGetTemperature(card->device, 0, &value);
    card->temperature = number(result, value);
    result = nvml->nvmlDeviceGetPerformanceState(card->device, &state);
    card->state = number(result, (unsigned long long)state);
    result = nvml->nvmlDeviceGetMigMode(card->device, &value, &pending);
    card->mig = number(result, value);
    card->mig_pending = number(result, pending);
}

void card_read(struct smi *smi, struct smi_card *card)
{
    const struct calls *nvml = &smi->calls;
    nvmlPciInfo_t pci;

    card->handle = nvml->nvmlDeviceGetHandleByIndex_v2(card->index, &card->device);
    if (card->handle != NVML_SUCCESS)
        return;
    card->handle = nvml->nvmlDeviceGetPciInfo_v3(card->device, &pci);
    if (card->handle != NVML_SUCCESS)
        return;
    memcpy(card->bus, pci.busId, sizeof card->bus);
    nvml->nvmlDeviceGetName(card->device, card->name, sizeof card->name);
    nvml->nvmlDeviceGetUUID(card->device, card->uuid, sizeof card->uuid);
    nvml->nvmlDeviceGetCudaComputeCapability(card->device, &card->major, &card->minor);
    nvml->nvmlDeviceGetPersistenceMode(card->device, &card->persistence);
    nvml->nvmlDeviceGetComputeMode(card->device, &card->compute_mode);
    nvml->nvmlDeviceGetDisplayActive(card->device, &card->display);
    read_memory(nvml, card);
    read_state(nvml, card);
}

int card_chosen(const struct smi_card *card, const char *wanted)
{
    char *end;

    if (wanted == NULL || strcmp(wanted, card->uuid) == 0 || strcmp(wanted, card->bus) == 0)
        return 1;
    return strtoul(wanted, &end, 10) == card->index && end != wanted && *end == '\0';
}
