/* Initialisation, versions, and what errors are called. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "handles.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct sim_driver driver;
static struct nvmlDevice_st devices[SIM_CARDS];
static unsigned int users;

nvmlReturn_t nvml_result(enum node_status status)
{
    switch (status) {
    case NODE_OK:
        return NVML_SUCCESS;
    case NODE_UNSUPPORTED:
        return NVML_ERROR_NOT_SUPPORTED;
    case NODE_LOST:
        return NVML_ERROR_GPU_IS_LOST;
    case NODE_ABSENT:
        return NVML_ERROR_DRIVER_NOT_LOADED;
    case NODE_INVALID:
        return NVML_ERROR_NOT_FOUND;
    case NODE_NO_CARD:
    case NODE_NO_MEMORY:
        break;
    }
    return NVML_ERROR_UNKNOWN;
}

nvmlReturn_t nvml_ready(struct sim_driver **answer)
{
    if (answer != NULL)
        *answer = &driver;
    return users == 0 ? NVML_ERROR_UNINITIALIZED : NVML_SUCCESS;
}

nvmlDevice_t nvml_card(unsigned int index)
{
    return index < (unsigned int)driver.count ? &devices[index] : NULL;
}

nvmlReturn_t nvml_check(nvmlDevice_t device, const void *place)
{
    if (users == 0)
        return NVML_ERROR_UNINITIALIZED;
    if (device < devices || device >= devices + driver.count || place == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    return device->card.lost ? NVML_ERROR_GPU_IS_LOST : NVML_SUCCESS;
}

nvmlReturn_t nvml_text(char *buffer, unsigned int length, const char *text)
{
    if (strlen(text) >= length)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    strcpy(buffer, text);
    return NVML_SUCCESS;
}

static nvmlReturn_t initialise(void)
{
    sim_look(&driver);
    switch (driver.fault) {
    case FAULT_NOT_LOADED:
        return NVML_ERROR_DRIVER_NOT_LOADED;
    case FAULT_MISMATCH:
        return NVML_ERROR_LIB_RM_VERSION_MISMATCH;
    case FAULT_UNKNOWN:
        return NVML_ERROR_UNKNOWN;
    case FAULT_NONE:
        break;
    }
    for (int i = 0; i < driver.count; i++)
        devices[i].card = driver.cards[i];
    return NVML_SUCCESS;
}

NVML_API nvmlReturn_t nvmlInitWithFlags(unsigned int flags)
{
    nvmlReturn_t result = NVML_SUCCESS;

    if (flags > 3)
        return NVML_ERROR_INVALID_ARGUMENT;
    pthread_mutex_lock(&lock);
    if (users == 0)
        result = initialise();
    if (result == NVML_SUCCESS)
        users++;
    pthread_mutex_unlock(&lock);
    return result;
}

NVML_API nvmlReturn_t nvmlInit_v2(void)
{
    return nvmlInitWithFlags(0);
}

NVML_API nvmlReturn_t nvmlInit(void)
{
    return nvmlInitWithFlags(0);
}

NVML_API nvmlReturn_t nvmlShutdown(void)
{
    nvmlReturn_t result = NVML_ERROR_UNINITIALIZED;

    pthread_mutex_lock(&lock);
    if (users > 0) {
        users--;
        result = NVML_SUCCESS;
    }
    pthread_mutex_unlock(&lock);
    return result;
}

NVML_API nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned int length)
{
    nvmlReturn_t result = nvml_ready(NULL);

    if (result == NVML_SUCCESS && version == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    return result == NVML_SUCCESS ? nvml_text(version, length, driver.version) : result;
}

/* The library knows its own version without a driver. */
NVML_API nvmlReturn_t nvmlSystemGetNVMLVersion(char *version, unsigned int length)
{
    char text[64];

    if (version == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    pthread_mutex_lock(&lock);
    if (driver.library[0] == '\0')
        sim_look(&driver);
    snprintf(text, sizeof text, "%d.%s", driver.cuda / 1000, driver.library);
    pthread_mutex_unlock(&lock);
    return nvml_text(version, length, text);
}

NVML_API nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version)
{
    nvmlReturn_t result = nvml_ready(NULL);

    if (result == NVML_SUCCESS && version == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (result == NVML_SUCCESS)
        *version = driver.cuda;
    return result;
}

NVML_API nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *version)
{
    return nvmlSystemGetCudaDriverVersion_v2(version);
}

/* Private tables of functions aren't part of the API, and there are none here. */
NVML_API nvmlReturn_t nvmlInternalGetExportTable(const void **table, const void *id)
{
    if (table == NULL || id == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    *table = NULL;
    return NVML_ERROR_NOT_FOUND;
}

NVML_API const char *nvmlErrorString(nvmlReturn_t result)
{
    switch (result) {
    case NVML_SUCCESS:
        return "Success";
    case NVML_ERROR_UNINITIALIZED:
        return "Uninitialized";
    case NVML_ERROR_INVALID_ARGUMENT:
        return "Invalid Argument";
    case NVML_ERROR_NOT_SUPPORTED:
        return "Not Supported";
    case NVML_ERROR_NO_PERMISSION:
        return "Insufficient Permissions";
    case NVML_ERROR_NOT_FOUND:
        return "Not Found";
    case NVML_ERROR_INSUFFICIENT_SIZE:
        return "Insufficient Size";
    case NVML_ERROR_DRIVER_NOT_LOADED:
        return "Driver Not Loaded";
    case NVML_ERROR_LIBRARY_NOT_FOUND:
        return "NVML Shared Library Not Found";
    case NVML_ERROR_FUNCTION_NOT_FOUND:
        return "Function Not Found";
    case NVML_ERROR_GPU_IS_LOST:
        return "GPU is lost";
    case NVML_ERROR_LIB_RM_VERSION_MISMATCH:
        return "Driver/library version mismatch";
    case NVML_ERROR_ARGUMENT_VERSION_MISMATCH:
        return "Argument version mismatch";
    case NVML_ERROR_UNKNOWN:
        break;
    }
    return "Unknown Error";
}
