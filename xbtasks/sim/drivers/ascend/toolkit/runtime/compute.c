/* Work for the device, and what orders it: streams, events, notifications. All work of a device is done in the order
 * in which it came, whatever the stream; a handle has no state. */
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "state.h"

enum { NS_PER_BLOCK = 20000, NS_PER_TASK = 200000, NS_PER_S = 1000000000 };

/* When the work that this process has queued is done. */
static _Atomic uint64_t done_at;

rtError_t runtime_run(uint64_t nanoseconds)
{
    uint64_t end, seen = atomic_load(&done_at);
    drvError_t failed;

    if (current_device() < 0)
        return ACL_ERROR_RT_CONTEXT_NULL;
    failed = halSqTaskSend((uint32_t)current_device(), nanoseconds, &end);
    while (!failed && seen < end && !atomic_compare_exchange_weak(&done_at, &seen, end))
        ;
    return runtime_code(failed);
}

static rtError_t await(void)
{
    uint64_t end = atomic_load(&done_at);
    struct timespec until = {.tv_sec = (time_t)(end / NS_PER_S), .tv_nsec = (long)(end % NS_PER_S)};

    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) != 0)
        ;
    return RT_ERROR_NONE;
}

static rtError_t make(void **handle)
{
    if (handle == NULL)
        return ACL_ERROR_RT_PARAM_INVALID;
    *handle = malloc(1);
    return *handle == NULL ? ACL_ERROR_RT_MEMORY_ALLOCATION : RT_ERROR_NONE;
}

static rtError_t end(void *handle)
{
    if (handle == NULL)
        return ACL_ERROR_RT_PARAM_INVALID;
    free(handle);
    return RT_ERROR_NONE;
}

rtError_t rtKernelLaunch(const void *stub, uint32_t blocks, void *arguments, uint32_t size, void *sm, void *stream)
{
    (void)stub, (void)arguments, (void)size, (void)sm, (void)stream;
    return runtime_run((uint64_t)blocks * NS_PER_BLOCK);
}

rtError_t rtStreamCreate(void **stream, int32_t priority)
{
    (void)priority;
    return make(stream);
}

rtError_t rtStreamDestroy(void *stream)
{
    return end(stream);
}

rtError_t rtStreamSynchronize(void *stream)
{
    (void)stream;
    return await();
}

rtError_t rtDeviceSynchronize(void)
{
    return await();
}

#define WORK(name)                         \
    RT_API rtError_t name(void)            \
    {                                      \
        return runtime_run(NS_PER_TASK);   \
    }
#define MAKE(name)                         \
    RT_API rtError_t name(void **handle)   \
    {                                      \
        return make(handle);               \
    }
#define MAKE_SECOND(name)                                  \
    RT_API rtError_t name(uintptr_t other, void **handle)  \
    {                                                      \
        (void)other;                                       \
        return make(handle);                               \
    }
#define END(name)                          \
    RT_API rtError_t name(void *handle)    \
    {                                      \
        return end(handle);                \
    }
#define ORDER(name)                                                            \
    RT_API rtError_t name(void)                                                \
    {                                                                          \
        return current_device() < 0 ? ACL_ERROR_RT_CONTEXT_NULL : RT_ERROR_NONE; \
    }
#include "compute.def"
