#include "allocations.h"

#include <pthread.h>
#include <stdlib.h>

#include "driver.h"
#include "log.h"
#include "real.h"
#include "region.h"

struct allocation {
    uint64_t key, size;
    int device;
    struct allocation *next;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct allocation *allocations;

int vgpu_current_device(void)
{
    CUdevice device;

    return CUDA(cuCtxGetDevice)(&device) == CUDA_SUCCESS ? device : -1;
}

void vgpu_remember(uint64_t key, int device, uint64_t size)
{
    struct allocation *fresh = malloc(sizeof *fresh);

    if (fresh == NULL) {
        LOG_ERROR("no memory to remember an allocation of %lu bytes", (unsigned long)size);
        return;
    }
    pthread_mutex_lock(&mutex);
    *fresh = (struct allocation){key, size, device, allocations};
    allocations = fresh;
    pthread_mutex_unlock(&mutex);
}

void vgpu_forget_all(void)
{
    pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;

    mutex = fresh;
    allocations = NULL; /* leaked: another thread of the parent may have been at it */
}

void vgpu_forget(uint64_t key)
{
    struct allocation **link, *found;

    pthread_mutex_lock(&mutex);
    for (link = &allocations; *link != NULL && (*link)->key != key;)
        link = &(*link)->next;
    found = *link;
    if (found != NULL)
        *link = found->next;
    pthread_mutex_unlock(&mutex);
    if (found == NULL)
        return;
    vgpu_unbook(found->device, found->size);
    free(found);
}
