/* Contexts: each costs memory on its device, and lists the process in NVML's table. */
#include <stdlib.h>

#include "state.h"

static CUcontext created;

int cuda_lives(CUcontext context)
{
    int lives = 0;

    cuda_lock();
    for (CUdevice i = 0; cuda_device(i) != NULL; i++)
        lives |= context == &cuda_device(i)->primary && context->uses > 0;
    for (CUcontext other = created; other != NULL; other = other->next)
        lives |= other == context;
    cuda_unlock();
    return lives;
}

static unsigned int card_of(CUdevice device)
{
    return cuda_device(device)->card.index;
}

static CUresult check(CUdevice device)
{
    CUresult result = cuda_ready();

    return result == CUDA_SUCCESS && cuda_device(device) == NULL ? CUDA_ERROR_INVALID_DEVICE : result;
}

CUDA_API CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    CUresult result = check(device);
    CUcontext primary;

    if (result != CUDA_SUCCESS || context == NULL)
        return result == CUDA_SUCCESS ? CUDA_ERROR_INVALID_VALUE : result;
    primary = &cuda_device(device)->primary;
    cuda_lock();
    if (primary->uses == 0)
        result = cuda_result(node_tell(NULL, "enter\t%u", card_of(device)));
    if (result == CUDA_SUCCESS) {
        primary->uses++;
        *context = primary;
    }
    cuda_unlock();
    return result;
}

static void end_primary(CUcontext primary)
{
    cuda_free_all(primary);
    node_tell(NULL, "leave\t%u", card_of(primary->device));
    primary->uses = 0;
    primary->end = 0;
}

CUDA_API CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
    CUresult result = check(device);
    CUcontext primary;

    if (result != CUDA_SUCCESS)
        return result;
    primary = &cuda_device(device)->primary;
    cuda_lock();
    if (primary->uses == 0)
        result = CUDA_ERROR_INVALID_CONTEXT;
    else if (primary->uses == 1)
        end_primary(primary);
    else
        primary->uses--;
    cuda_unlock();
    return result;
}

CUDA_API CUresult cuDevicePrimaryCtxRelease(CUdevice device)
{
    return cuDevicePrimaryCtxRelease_v2(device);
}

CUDA_API CUresult cuDevicePrimaryCtxReset_v2(CUdevice device)
{
    CUresult result = check(device);

    if (result != CUDA_SUCCESS)
        return result;
    cuda_lock();
    if (cuda_device(device)->primary.uses > 0)
        end_primary(&cuda_device(device)->primary);
    cuda_unlock();
    return CUDA_SUCCESS;
}

CUDA_API CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned int *flags, int *active)
{
    CUresult result = check(device);

    if (result != CUDA_SUCCESS || flags == NULL || active == NULL)
        return result == CUDA_SUCCESS ? CUDA_ERROR_INVALID_VALUE : result;
    *flags = cuda_device(device)->primary.flags;
    *active = cuda_device(device)->primary.uses > 0;
    return CUDA_SUCCESS;
}

CUDA_API CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned int flags)
{
    CUresult result = check(device);

    if (result == CUDA_SUCCESS)
        cuda_device(device)->primary.flags = flags;
    return result;
}

/* A context that was created is current in the thread that created it. */
CUDA_API CUresult cuCtxCreate_v2(CUcontext *context, unsigned int flags, CUdevice device)
{
    CUresult result = check(device);
    CUcontext fresh;

    if (result != CUDA_SUCCESS || context == NULL)
        return result == CUDA_SUCCESS ? CUDA_ERROR_INVALID_VALUE : result;
    fresh = calloc(1, sizeof *fresh);
    if (fresh == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    result = cuda_result(node_tell(NULL, "enter\t%u", card_of(device)));
    if (result != CUDA_SUCCESS) {
        free(fresh);
        return result;
    }
    fresh->device = device;
    fresh->flags = flags;
    cuda_lock();
    fresh->next = created;
    created = fresh;
    cuda_unlock();
    *context = fresh;
    return cuCtxPushCurrent_v2(fresh);
}

CUDA_API CUresult cuCtxCreate_v3(CUcontext *context, void *affinity, int count, unsigned int flags, CUdevice device)
{
    return affinity != NULL || count != 0 ? CUDA_ERROR_NOT_SUPPORTED : cuCtxCreate_v2(context, flags, device);
}

CUDA_API CUresult cuCtxCreate_v4(CUcontext *context, void *parameters, unsigned int flags, CUdevice device)
{
    return parameters != NULL ? CUDA_ERROR_NOT_SUPPORTED : cuCtxCreate_v2(context, flags, device);
}

CUDA_API CUresult cuCtxDestroy_v2(CUcontext context)
{
    CUresult result = cuda_ready();
    CUcontext current, *link;

    if (result != CUDA_SUCCESS)
        return result;
    if (cuCtxGetCurrent(&current) == CUDA_SUCCESS && current == context)
        cuCtxPopCurrent_v2(&current);
    cuda_lock();
    for (link = &created; *link != NULL && *link != context;)
        link = &(*link)->next;
    if (*link != NULL) {
        *link = context->next;
        cuda_free_all(context);
        node_tell(NULL, "leave\t%u", card_of(context->device));
        free(context);
    } else {
        result = CUDA_ERROR_INVALID_CONTEXT;
    }
    cuda_unlock();
    return result;
}
