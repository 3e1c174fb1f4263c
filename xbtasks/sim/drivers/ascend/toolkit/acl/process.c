/* The process as a whole, its devices and streams. */
#include <stdatomic.h>

#include "acl.h"
#include "runtime.h"

static atomic_bool initialised;

ACL_API aclError aclInitImpl(const char *config)
{
    (void)config;
    return atomic_exchange(&initialised, 1) ? ACL_ERROR_REPEAT_INITIALIZE : ACL_SUCCESS;
}

ACL_API aclError aclFinalizeImpl(void)
{
    return atomic_exchange(&initialised, 0) ? ACL_SUCCESS : ACL_ERROR_UNINITIALIZE;
}

ACL_API aclError aclrtGetVersionImpl(int32_t *major, int32_t *minor, int32_t *patch)
{
    if (major == NULL || minor == NULL || patch == NULL)
        return ACL_ERROR_INVALID_PARAM;
    *major = 1;
    *minor = 14;
    *patch = 0;
    return ACL_SUCCESS;
}

/* It may be asked before a device is set; null where there is none. */
ACL_API const char *aclrtGetSocNameImpl(void)
{
    static char name[64];

    return rtGetSocVersion(name, sizeof name) == RT_ERROR_NONE ? name : NULL;
}

ACL_API aclError aclrtSetDeviceImpl(int32_t device)
{
    return rtSetDevice(device);
}

ACL_API aclError aclrtResetDeviceImpl(int32_t device)
{
    return rtDeviceReset(device);
}

ACL_API aclError aclrtGetDeviceImpl(int32_t *device)
{
    return rtGetDevice(device);
}

ACL_API aclError aclrtGetDeviceCountImpl(uint32_t *count)
{
    return rtGetDeviceCount((int32_t *)count);
}

ACL_API aclError aclrtSynchronizeDeviceImpl(void)
{
    return rtDeviceSynchronize();
}

/* A context is its device's default one; the handle is the device's number and one. */
ACL_API aclError aclrtCreateContextImpl(void **context, int32_t device)
{
    if (context == NULL)
        return ACL_ERROR_INVALID_PARAM;
    *context = (void *)(intptr_t)(device + 1);
    return rtSetDevice(device);
}

ACL_API aclError aclrtDestroyContextImpl(void *context)
{
    return context == NULL ? ACL_ERROR_INVALID_PARAM : ACL_SUCCESS;
}

ACL_API aclError aclrtCreateStreamImpl(void **stream)
{
    return rtStreamCreate(stream, 0);
}

ACL_API aclError aclrtDestroyStreamImpl(void *stream)
{
    return rtStreamDestroy(stream);
}

ACL_API aclError aclrtSynchronizeStreamImpl(void *stream)
{
    return rtStreamSynchronize(stream);
}
