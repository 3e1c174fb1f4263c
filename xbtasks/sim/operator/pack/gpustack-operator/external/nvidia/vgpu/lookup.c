/* cuGetProcAddress: how the CUDA runtime looks the driver's functions up, by base name and version. */
#include <string.h>

#include "driver.h"
#include "hooks.h"
#include "real.h"

/* The real lookup says whether the driver has the function; only then does the hook take its place. The lookup itself
 * has one more argument from CUDA 12 on; of all others the newest version is the one to hook. */
static CUresult hooked(CUresult result, const char *symbol, void **function, int version)
{
    void *hook = NULL;

    if (result != CUDA_SUCCESS || *function == NULL)
        return result;
    if (version < 12000 && strcmp(symbol, "cuGetProcAddress") == 0)
        hook = vgpu_hook(symbol);
    else
        hook = vgpu_hook_of_base(symbol);
    if (hook != NULL)
        *function = hook;
    return result;
}

VGPU_HOOK CUresult cuGetProcAddress(const char *symbol, void **function, int version, cuuint64_t flags)
{
    return hooked(CUDA(cuGetProcAddress)(symbol, function, version, flags), symbol, function, version);
}

VGPU_HOOK CUresult cuGetProcAddress_v2(const char *symbol, void **function, int version, cuuint64_t flags, int *status)
{
    return hooked(CUDA(cuGetProcAddress_v2)(symbol, function, version, flags, status), symbol, function, version);
}
