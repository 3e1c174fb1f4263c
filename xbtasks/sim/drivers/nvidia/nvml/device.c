/* Which cards there are. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "handles.h"

NVML_API nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count)
{
    struct sim_driver *driver;
    nvmlReturn_t result = nvml_ready(&driver);

    if (result == NVML_SUCCESS && count == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (result == NVML_SUCCESS)
        *count = (unsigned int)driver->count;
    return result;
}

NVML_API nvmlReturn_t nvmlDeviceGetCount(unsigned int *count)
{
    return nvmlDeviceGetCount_v2(count);
}

NVML_API nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device)
{
    nvmlReturn_t result = nvml_ready(NULL);

    if (result != NVML_SUCCESS)
        return result;
    if (device == NULL || nvml_card(index) == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (nvml_card(index)->card.lost)
        return NVML_ERROR_GPU_IS_LOST;
    *device = nvml_card(index);
    return NVML_SUCCESS;
}

NVML_API nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned int index, nvmlDevice_t *device)
{
    return nvmlDeviceGetHandleByIndex_v2(index, device);
}

static nvmlReturn_t find(const char *text, int by_bus, nvmlDevice_t *device)
{
    nvmlReturn_t result = nvml_ready(NULL);

    if (result != NVML_SUCCESS)
        return result;
    if (text == NULL || device == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    for (unsigned int i = 0; nvml_card(i) != NULL; i++) {
        const struct sim_card *card = &nvml_card(i)->card;

        if (strcmp(by_bus ? card->bus : card->uuid, text) == 0 || (by_bus && strcmp(card->bus + 4, text) == 0))
            return nvmlDeviceGetHandleByIndex_v2(i, device);
    }
    return NVML_ERROR_NOT_FOUND;
}

NVML_API nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device)
{
    return find(uuid, 0, device);
}

NVML_API nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *bus, nvmlDevice_t *device)
{
    return find(bus, 1, device);
}

NVML_API nvmlReturn_t nvmlDeviceGetHandleByPciBusId(const char *bus, nvmlDevice_t *device)
{
    return find(bus, 1, device);
}

NVML_API nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned int *index)
{
    nvmlReturn_t result = nvml_check(device, index);

    if (result == NVML_SUCCESS)
        *index = (unsigned int)(device - nvml_card(0));
    return result;
}

NVML_API nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned int *minor)
{
    nvmlReturn_t result = nvml_check(device, minor);

    if (result == NVML_SUCCESS)
        *minor = device->card.index;
    return result;
}

NVML_API nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned int length)
{
    nvmlReturn_t result = nvml_check(device, uuid);

    return result == NVML_SUCCESS ? nvml_text(uuid, length, device->card.uuid) : result;
}

NVML_API nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned int length)
{
    nvmlReturn_t result = nvml_check(device, name);

    return result == NVML_SUCCESS ? nvml_text(name, length, device->card.name) : result;
}

NVML_API nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *pci)
{
    nvmlReturn_t result = nvml_check(device, pci);

    if (result != NVML_SUCCESS)
        return result;
    memset(pci, 0, sizeof *pci);
    snprintf(pci->busId, sizeof pci->busId, "%s", device->card.bus);
    snprintf(pci->busIdLegacy, sizeof pci->busIdLegacy, "%s", device->card.bus + 4);
    pci->bus = (unsigned int)strtoul(device->card.bus + 9, NULL, 16);
    return NVML_SUCCESS;
}

/* The second version ends before the long bus id. */
NVML_API nvmlReturn_t nvmlDeviceGetPciInfo_v2(nvmlDevice_t device, nvmlPciInfo_t *pci)
{
    nvmlPciInfo_t whole;
    nvmlReturn_t result = pci == NULL ? NVML_ERROR_INVALID_ARGUMENT : nvmlDeviceGetPciInfo_v3(device, &whole);

    if (result == NVML_SUCCESS)
        memcpy(pci, &whole, sizeof whole - sizeof whole.busId);
    return result;
}

NVML_API nvmlReturn_t nvmlDeviceGetPciInfo(nvmlDevice_t device, nvmlPciInfo_t *pci)
{
    return nvmlDeviceGetPciInfo_v2(device, pci);
}

NVML_API nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int *major, int *minor)
{
    nvmlReturn_t result = nvml_check(device, major);

    if (result == NVML_SUCCESS && minor == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (result == NVML_SUCCESS) {
        *major = device->card.major;
        *minor = device->card.minor;
    }
    return result;
}
