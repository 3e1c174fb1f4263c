/* cuGetProcAddress: how the CUDA runtime looks the driver's functions up, by base name and version. */
#include "driver.h"
#include "hooks.h"
#include "real.h"

/* The real lookup says whether the driver has the function; only then does the hook take its place. */
static CUresult hooked(CUresult result, const char *symbol, void **function)
{
    void *hook = result == CUDA_SUCCESS && *function != NULL ? vgpu_hook_of_base(symbol) : NULL;

    if (hook != NULL)
        *function = hook;
    return result;
}

VGPU_HOOK CUresult cuGetProcAddress(const char *symbol, void **function, int version, cuuint64_t flags)
{
    return hooked(CUDA(cuGetProcAddress)(symbol, function, version, flags), symbol, function);
}

VGPU_HOOK CUresult cuGetProcAddress_v2(const char *symbol, void **function, int version, cuuint64_t flags, int *status)
{
    return hooked(CUDA(cuGetProcAddress_v2)(symbol, function, version, flags, status), symbol, function);
}
