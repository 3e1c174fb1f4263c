/* Device memory. An allocation is an area of addresses of this process that the host can use too, as the driver's
 * shared virtual memory: pages that nobody writes to cost the host nothing. */
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "board.h"
#include "device.h"

struct block {
    void *pointer;
    uint64_t size; /* in whole pages */
    int phy_id;
    struct block *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct block *blocks;

static void remember(struct block *block)
{
    pthread_mutex_lock(&lock);
    block->next = blocks;
    blocks = block;
    pthread_mutex_unlock(&lock);
}

static struct block *forget(const void *pointer)
{
    struct block **place, *found;

    pthread_mutex_lock(&lock);
    for (place = &blocks; *place != NULL && (*place)->pointer != pointer; place = &(*place)->next)
        ;
    found = *place;
    if (found != NULL)
        *place = found->next;
    pthread_mutex_unlock(&lock);
    return found;
}

static drvError_t take(struct block *block)
{
    drvError_t failed =
        hal_code((int)node_tell(NULL, "ascend\ttake\t%d\t%llu", block->phy_id, (unsigned long long)block->size));

    if (failed)
        return failed;
    block->pointer =
        mmap(NULL, block->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (block->pointer != MAP_FAILED)
        return DRV_ERROR_NONE;
    node_tell(NULL, "ascend\tgive\t%d\t%llu", block->phy_id, (unsigned long long)block->size);
    return DRV_ERROR_OUT_OF_MEMORY;
}

drvError_t halMemAlloc(void **pointer, uint64_t size, uint32_t device)
{
    struct block *block;
    int phy_id;
    drvError_t failed = hal_phy_id(device, &phy_id);

    if (failed)
        return failed;
    if (size == 0 || size > UINT64_MAX - HAL_PAGE)
        return DRV_ERROR_INVALID_VALUE;
    block = malloc(sizeof *block);
    if (block == NULL)
        return DRV_ERROR_OUT_OF_MEMORY;
    block->phy_id = phy_id;
    block->size = (size + HAL_PAGE - 1) / HAL_PAGE * HAL_PAGE;
    failed = take(block);
    if (failed) {
        free(block);
        return failed;
    }
    remember(block);
    *pointer = block->pointer;
    return DRV_ERROR_NONE;
}

drvError_t halMemFree(void *pointer)
{
    struct block *block = forget(pointer);
    drvError_t failed;

    if (block == NULL)
        return DRV_ERROR_INVALID_VALUE;
    munmap(block->pointer, block->size);
    failed = hal_code((int)node_tell(NULL, "ascend\tgive\t%d\t%llu", block->phy_id, (unsigned long long)block->size));
    free(block);
    return failed;
}
