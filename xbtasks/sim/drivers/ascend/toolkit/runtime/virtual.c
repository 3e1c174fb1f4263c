/* Physical memory and addresses apart: a handle is memory of a device, which counts from when it is made; addresses
 * are reserved without any, and used once a handle is mapped there. */
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "state.h"

enum { GRANULARITY = 2 << 20 };

struct area {
    void *pointer;
    size_t size;
    struct area *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct area *areas;

rtError_t rtMallocPhysical(void **handle, size_t size, void *properties, uint64_t flags)
{
    (void)properties, (void)flags;
    if (handle == NULL || size == 0 || size % GRANULARITY != 0)
        return ACL_ERROR_RT_PARAM_INVALID;
    if (current_device() < 0)
        return ACL_ERROR_RT_CONTEXT_NULL;
    return runtime_code(halMemAlloc(handle, size, (uint32_t)current_device()));
}

rtError_t rtFreePhysical(void *handle)
{
    return handle == NULL ? ACL_ERROR_RT_PARAM_INVALID : runtime_code(halMemFree(handle));
}

rtError_t rtReserveMemAddress(void **pointer, size_t size, size_t alignment, void *wish, uint64_t flags)
{
    struct area *area = malloc(sizeof *area);

    (void)alignment, (void)wish, (void)flags;
    if (area == NULL)
        return ACL_ERROR_RT_MEMORY_ALLOCATION;
    area->size = size;
    area->pointer = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (area->pointer == MAP_FAILED) {
        free(area);
        return ACL_ERROR_RT_PARAM_INVALID;
    }
    pthread_mutex_lock(&lock);
    area->next = areas;
    areas = area;
    pthread_mutex_unlock(&lock);
    *pointer = area->pointer;
    return RT_ERROR_NONE;
}

/* Calls `change` on the area that begins at `pointer`, and takes it off the list if that says so. */
static rtError_t with_area(void *pointer, int (*change)(struct area *area))
{
    struct area **place, *area;

    pthread_mutex_lock(&lock);
    for (place = &areas; *place != NULL && (*place)->pointer != pointer; place = &(*place)->next)
        ;
    area = *place;
    if (area != NULL && change(area)) {
        *place = area->next;
        free(area);
    }
    pthread_mutex_unlock(&lock);
    return area == NULL ? ACL_ERROR_RT_PARAM_INVALID : RT_ERROR_NONE;
}

static int release(struct area *area)
{
    munmap(area->pointer, area->size);
    return 1;
}

static int open_up(struct area *area)
{
    mprotect(area->pointer, area->size, PROT_READ | PROT_WRITE);
    return 0;
}

static int close_up(struct area *area)
{
    mprotect(area->pointer, area->size, PROT_NONE);
    return 0;
}

rtError_t rtReleaseMemAddress(void *pointer)
{
    return with_area(pointer, release);
}

rtError_t rtMapMem(void *pointer, size_t size, size_t offset, void *handle, uint64_t flags)
{
    (void)size, (void)offset, (void)flags;
    return handle == NULL ? ACL_ERROR_RT_PARAM_INVALID : with_area(pointer, open_up);
}

rtError_t rtUnmapMem(void *pointer)
{
    return with_area(pointer, close_up);
}
