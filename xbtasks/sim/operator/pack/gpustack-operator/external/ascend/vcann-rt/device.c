/* Setting a device: where a process gets its slice. Without one, no device is set. */
#include "runtime.h"
#include "vnpu.h"

RUNTIME_HOOK rtError_t rtSetDevice(int32_t device)
{
    int failed = vnpu_start();

    return failed ? failed : RUNTIME(rtSetDevice)(device);
}

RUNTIME_HOOK rtError_t rtSetDeviceEx(int32_t device)
{
    int failed = vnpu_start();

    return failed ? failed : RUNTIME(rtSetDeviceEx)(device);
}

RUNTIME_HOOK rtError_t rtSetDeviceWithFlags(int32_t device, uint64_t flags)
{
    int failed = vnpu_start();

    return failed ? failed : RUNTIME(rtSetDeviceWithFlags)(device, flags);
}

RUNTIME_HOOK rtError_t rtSetDeviceWithoutTsd(int32_t device)
{
    int failed = vnpu_start();

    return failed ? failed : RUNTIME(rtSetDeviceWithoutTsd)(device);
}
