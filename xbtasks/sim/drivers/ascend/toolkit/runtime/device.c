/* Devices. A process has one context on each that it uses, however often it sets it. */
#include <pthread.h>

#include "state.h"

enum { MOST_DEVICES = 64 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int opened[MOST_DEVICES];
static _Thread_local int current = -1;

int current_device(void)
{
    return current;
}

rtError_t runtime_code(drvError_t code)
{
    switch (code) {
    case DRV_ERROR_NONE:
        return RT_ERROR_NONE;
    case DRV_ERROR_OUT_OF_MEMORY:
        return ACL_ERROR_RT_MEMORY_ALLOCATION;
    case DRV_ERROR_INVALID_DEVICE:
        return ACL_ERROR_RT_INVALID_DEVICEID;
    case DRV_ERROR_INVALID_VALUE:
        return ACL_ERROR_RT_PARAM_INVALID;
    case DRV_ERROR_RESOURCE_OCCUPIED:
        return ACL_ERROR_RT_DEV_SETUP_ERROR;
    default:
        return ACL_ERROR_RT_DRV_INTERNAL_ERROR;
    }
}

static rtError_t set(int32_t device)
{
    drvError_t failed = DRV_ERROR_NONE;

    if (device < 0 || device >= MOST_DEVICES)
        return ACL_ERROR_RT_INVALID_DEVICEID;
    pthread_mutex_lock(&lock);
    if (!opened[device])
        failed = drvDeviceOpen((uint32_t)device);
    if (!failed)
        opened[device] = 1;
    pthread_mutex_unlock(&lock);
    if (!failed)
        current = device;
    return runtime_code(failed);
}

rtError_t rtSetDevice(int32_t device)
{
    return set(device);
}

RT_API rtError_t rtSetDeviceEx(int32_t device)
{
    return set(device);
}

RT_API rtError_t rtSetDeviceWithFlags(int32_t device, uint64_t flags)
{
    (void)flags;
    return set(device);
}

RT_API rtError_t rtSetDeviceWithoutTsd(int32_t device)
{
    return set(device);
}

rtError_t rtDeviceReset(int32_t device)
{
    drvError_t failed = DRV_ERROR_NONE;

    if (device < 0 || device >= MOST_DEVICES)
        return ACL_ERROR_RT_INVALID_DEVICEID;
    pthread_mutex_lock(&lock);
    if (opened[device])
        failed = drvDeviceClose((uint32_t)device);
    opened[device] = 0;
    pthread_mutex_unlock(&lock);
    if (current == device)
        current = -1;
    return runtime_code(failed);
}

rtError_t rtGetDevice(int32_t *device)
{
    if (device == NULL)
        return ACL_ERROR_RT_PARAM_INVALID;
    if (current < 0)
        return ACL_ERROR_RT_CONTEXT_NULL;
    *device = current;
    return RT_ERROR_NONE;
}

rtError_t rtGetDeviceCount(int32_t *count)
{
    uint32_t found;
    drvError_t failed = drvGetDevNum(&found);

    if (count == NULL)
        return ACL_ERROR_RT_PARAM_INVALID;
    *count = (int32_t)found;
    return runtime_code(failed);
}

rtError_t rtGetSocVersion(char *name, uint32_t size)
{
    return name == NULL ? ACL_ERROR_RT_PARAM_INVALID : runtime_code(halGetSocVersion(0, name, size));
}
