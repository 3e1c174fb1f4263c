/* Setting a device: where a process gets its slice. Without one, no device is set. */
#include "log.h"
#include "slice.h"

static rtError_t before(int32_t device)
{
    rtError_t failed = slice_start();

    if (!failed && device != 0)
        LOG_WARN("SetDevice should only pass devId=0.");
    return failed;
}

static rtError_t after(const char *name, rtError_t failed)
{
    if (failed)
        LOG_ERROR("Call %s fails, ret:%d.", name, failed);
    else
        slice_settle();
    return failed;
}

RUNTIME_HOOK rtError_t rtSetDevice(int32_t device)
{
    rtError_t failed = before(device);

    return failed ? failed : after("rtSetDevice", RUNTIME(rtSetDevice)(device));
}

RUNTIME_HOOK rtError_t rtSetDeviceEx(int32_t device)
{
    rtError_t failed = before(device);

    return failed ? failed : after("rtSetDeviceEx", RUNTIME(rtSetDeviceEx)(device));
}

RUNTIME_HOOK rtError_t rtSetDeviceWithFlags(int32_t device, uint64_t flags)
{
    rtError_t failed = before(device);

    return failed ? failed : after("rtSetDeviceWithFlags", RUNTIME(rtSetDeviceWithFlags)(device, flags));
}

RUNTIME_HOOK rtError_t rtSetDeviceWithoutTsd(int32_t device)
{
    rtError_t failed = before(device);

    return failed ? failed : after("rtSetDeviceWithoutTsd", RUNTIME(rtSetDeviceWithoutTsd)(device));
}
