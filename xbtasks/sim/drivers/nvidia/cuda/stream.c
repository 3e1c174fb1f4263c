/* Streams and events: points in the card's time, and waiting for them. */
#include <stdlib.h>

#include "state.h"
#include "timeline.h"

struct CUstream_st {
    CUcontext context;
    uint64_t end;
};

struct CUevent_st {
    uint64_t time;
    int recorded, timed;
};

/* NULL, CU_STREAM_LEGACY and CU_STREAM_PER_THREAD stand for the context's own stream. */
static int is_default(CUstream stream)
{
    return (uintptr_t)stream <= 2;
}

static uint64_t end_of(CUcontext context, CUstream stream)
{
    return is_default(stream) ? context->end : stream->end;
}

CUresult cuda_run(CUcontext context, CUstream stream, uint64_t nanoseconds)
{
    uint64_t end;

    if (!timeline_book(cuda_device(context->device)->card.index, nanoseconds, &end))
        return CUDA_ERROR_UNKNOWN;
    cuda_lock();
    if (!is_default(stream))
        stream->end = end;
    if (end > context->end)
        context->end = end;
    cuda_unlock();
    return CUDA_SUCCESS;
}

CUDA_API CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned int flags, int priority)
{
    CUresult result;
    CUcontext context = cuda_current(&result);

    (void)priority; /* there is one priority, see cuCtxGetStreamPriorityRange */
    if (context == NULL)
        return result;
    if (stream == NULL || flags > 1)
        return CUDA_ERROR_INVALID_VALUE;
    *stream = calloc(1, sizeof **stream);
    if (*stream == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    (*stream)->context = context;
    return CUDA_SUCCESS;
}

CUDA_API CUresult cuStreamCreate(CUstream *stream, unsigned int flags)
{
    return cuStreamCreateWithPriority(stream, flags, 0);
}

CUDA_API CUresult cuStreamDestroy_v2(CUstream stream)
{
    if (is_default(stream))
        return CUDA_ERROR_INVALID_HANDLE;
    free(stream);
    return cuda_ready();
}

CUDA_API CUresult cuStreamSynchronize(CUstream stream)
{
    CUresult result;
    CUcontext context = cuda_current(&result);

    if (context == NULL)
        return result;
    timeline_flush();
    cuda_sleep_until(end_of(context, stream));
    return CUDA_SUCCESS;
}

CUDA_API CUresult cuStreamQuery(CUstream stream)
{
    CUresult result;
    CUcontext context = cuda_current(&result);

    if (context == NULL)
        return result;
    return end_of(context, stream) > cuda_now() ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

/* The card does one thing after the other, so what comes later in any stream is later. */
CUDA_API CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags)
{
    (void)stream;
    return event == NULL || flags > 1 ? CUDA_ERROR_INVALID_VALUE : cuda_ready();
}

CUDA_API CUresult cuEventCreate(CUevent *event, unsigned int flags)
{
    enum { DISABLE_TIMING = 2 };
    CUresult result;

    if (cuda_current(&result) == NULL)
        return result;
    if (event == NULL || flags > 7)
        return CUDA_ERROR_INVALID_VALUE;
    *event = calloc(1, sizeof **event);
    if (*event == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    (*event)->timed = !(flags & DISABLE_TIMING);
    return CUDA_SUCCESS;
}

CUDA_API CUresult cuEventRecord(CUevent event, CUstream stream)
{
    CUresult result;
    CUcontext context = cuda_current(&result);
    uint64_t now = cuda_now();

    if (context == NULL || event == NULL)
        return context == NULL ? result : CUDA_ERROR_INVALID_HANDLE;
    event->time = end_of(context, stream) > now ? end_of(context, stream) : now;
    event->recorded = 1;
    return CUDA_SUCCESS;
}

CUDA_API CUresult cuEventSynchronize(CUevent event)
{
    if (event == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    timeline_flush();
    cuda_sleep_until(event->time);
    return cuda_ready();
}

CUDA_API CUresult cuEventQuery(CUevent event)
{
    if (event == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    return event->time > cuda_now() ? CUDA_ERROR_NOT_READY : cuda_ready();
}

CUDA_API CUresult cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end)
{
    if (milliseconds == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (start == NULL || end == NULL || !start->recorded || !end->recorded || !start->timed || !end->timed)
        return CUDA_ERROR_INVALID_HANDLE;
    if (start->time > cuda_now() || end->time > cuda_now())
        return CUDA_ERROR_NOT_READY;
    *milliseconds = (float)((double)((int64_t)end->time - (int64_t)start->time) / 1e6);
    return CUDA_SUCCESS;
}

CUDA_API CUresult cuEventDestroy_v2(CUevent event)
{
    if (event == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    free(event);
    return cuda_ready();
}
