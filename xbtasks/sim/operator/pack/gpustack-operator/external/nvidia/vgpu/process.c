/* The start of a process on a device: the driver's initialisation and its context. */
#include "driver.h"
#include "real.h"

/* Names the toolkit and commit that the library was built for: `strings` shows it. */
VGPU_HOOK const char vgpu_build[] = "vgpu build: " VGPU_BUILD;

VGPU_HOOK CUresult cuInit(unsigned int flags)
{
    return CUDA(cuInit)(flags);
}

VGPU_HOOK CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    return CUDA(cuDevicePrimaryCtxRetain)(context, device);
}
