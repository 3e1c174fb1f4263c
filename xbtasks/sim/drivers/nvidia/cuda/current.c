/* The context that is current in a thread. */
#include "state.h"
#include "timeline.h"

enum { DEPTH = 32 };

static _Thread_local CUcontext stack[DEPTH];
static _Thread_local int depth;

CUcontext cuda_current(CUresult *result)
{
    *result = cuda_ready();
    if (*result != CUDA_SUCCESS)
        return NULL;
    if (depth == 0 || !cuda_lives(stack[depth - 1])) {
        *result = CUDA_ERROR_INVALID_CONTEXT;
        return NULL;
    }
    return stack[depth - 1];
}

struct device *cuda_current_device(CUresult *result)
{
    CUcontext context = cuda_current(result);

    return context == NULL ? NULL : cuda_device(context->device);
}

CUDA_API CUresult cuCtxGetCurrent(CUcontext *context)
{
    CUresult result = cuda_ready();

    if (result != CUDA_SUCCESS || context == NULL)
        return result == CUDA_SUCCESS ? CUDA_ERROR_INVALID_VALUE : result;
    *context = depth == 0 ? NULL : stack[depth - 1];
    return CUDA_SUCCESS;
}

CUDA_API CUresult cuCtxSetCurrent(CUcontext context)
{
    CUresult result = cuda_ready();

    if (result != CUDA_SUCCESS)
        return result;
    if (context == NULL) {
        depth -= depth > 0;
        return CUDA_SUCCESS;
    }
    if (!cuda_lives(context))
        return CUDA_ERROR_INVALID_CONTEXT;
    depth += depth == 0;
    stack[depth - 1] = context;
    return CUDA_SUCCESS;
}

CUDA_API CUresult cuCtxPushCurrent_v2(CUcontext context)
{
    CUresult result = cuda_ready();

    if (result != CUDA_SUCCESS)
        return result;
    if (!cuda_lives(context) || depth == DEPTH)
        return CUDA_ERROR_INVALID_CONTEXT;
    stack[depth++] = context;
    return CUDA_SUCCESS;
}

CUDA_API CUresult cuCtxPopCurrent_v2(CUcontext *context)
{
    CUresult result = cuda_ready();

    if (result != CUDA_SUCCESS)
        return result;
    if (depth == 0)
        return CUDA_ERROR_INVALID_CONTEXT;
    depth--;
    if (context != NULL)
        *context = stack[depth];
    return CUDA_SUCCESS;
}

CUDA_API CUresult cuCtxGetDevice(CUdevice *device)
{
    CUresult result;
    CUcontext context = cuda_current(&result);

    if (context == NULL || device == NULL)
        return context == NULL ? result : CUDA_ERROR_INVALID_VALUE;
    *device = context->device;
    return CUDA_SUCCESS;
}

CUDA_API CUresult cuCtxGetFlags(unsigned int *flags)
{
    CUresult result;
    CUcontext context = cuda_current(&result);

    if (context == NULL || flags == NULL)
        return context == NULL ? result : CUDA_ERROR_INVALID_VALUE;
    *flags = context->flags;
    return CUDA_SUCCESS;
}

CUDA_API CUresult cuCtxGetApiVersion(CUcontext context, unsigned int *version)
{
    CUresult result = cuda_ready();

    if (result != CUDA_SUCCESS || version == NULL)
        return result == CUDA_SUCCESS ? CUDA_ERROR_INVALID_VALUE : result;
    if (context != NULL && !cuda_lives(context))
        return CUDA_ERROR_INVALID_CONTEXT;
    *version = 3020;
    return CUDA_SUCCESS;
}

CUDA_API CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
    CUresult result;

    if (cuda_current(&result) == NULL)
        return result;
    if (least != NULL)
        *least = 0;
    if (greatest != NULL)
        *greatest = 0;
    return CUDA_SUCCESS;
}

CUDA_API CUresult cuCtxSynchronize(void)
{
    CUresult result;
    CUcontext context = cuda_current(&result);

    if (context == NULL)
        return result;
    timeline_flush();
    cuda_sleep_until(context->end);
    return CUDA_SUCCESS;
}
