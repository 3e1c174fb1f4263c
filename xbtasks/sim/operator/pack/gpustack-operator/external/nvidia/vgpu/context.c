/* Primary contexts: what one takes of its device's memory counts, from the first retain to the last release. */
#include "context.h"

#include <pthread.h>
#include <string.h>

#include "driver.h"
#include "limits.h"
#include "real.h"
#include "region.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static uint64_t context_size;
static struct {
    int retained;
    uint64_t booked;
} contexts[VGPU_DEVICES];

static int one_more(int times)
{
    return times + 1;
}

static int one_less(int times)
{
    return times - 1;
}

static int none(int times)
{
    (void)times;
    return 0;
}

void vgpu_forget_contexts(void)
{
    pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;

    mutex = fresh;
    memset(contexts, 0, sizeof contexts);
    context_size = 0;
}

void vgpu_set_context_size(uint64_t size)
{
    context_size = size;
}

/* Notes how often a device's context is retained now. */
static void note(CUdevice device, int (*now)(int))
{
    if (device < 0 || device >= VGPU_DEVICES)
        return;
    pthread_mutex_lock(&mutex);
    contexts[device].retained = now(contexts[device].retained);
    if (contexts[device].retained > 0 && contexts[device].booked == 0) {
        contexts[device].booked = context_size;
        vgpu_book_context(device, context_size);
    } else if (contexts[device].retained == 0) {
        vgpu_unbook(device, contexts[device].booked);
        contexts[device].booked = 0;
    }
    pthread_mutex_unlock(&mutex);
}

VGPU_HOOK CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    CUresult result = CUDA(cuDevicePrimaryCtxRetain)(context, device);

    if (result == CUDA_SUCCESS)
        note(device, one_more);
    return result;
}

VGPU_HOOK CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
    CUresult result = CUDA(cuDevicePrimaryCtxRelease_v2)(device);

    if (result == CUDA_SUCCESS)
        note(device, one_less);
    return result;
}

VGPU_HOOK CUresult cuDevicePrimaryCtxReset_v2(CUdevice device)
{
    CUresult result = CUDA(cuDevicePrimaryCtxReset_v2)(device);

    if (result == CUDA_SUCCESS)
        note(device, none);
    return result;
}
