/* Stream-ordered memory: pools, and what is allocated from them. */
#include <stdlib.h>

#include "blocks.h"

struct CUmemPoolHandle_st {
    CUdevice device;
    uint64_t threshold;
    uint64_t used, used_high, reserved, reserved_high;
};

enum pool_attribute { RELEASE_THRESHOLD = 4, RESERVED_CURRENT, RESERVED_HIGH, USED_CURRENT, USED_HIGH };

static CUresult default_pool(CUmemoryPool *pool, CUdevice number)
{
    CUresult result = cuda_ready();
    struct device *device = cuda_device(number);

    if (result != CUDA_SUCCESS)
        return result;
    if (device == NULL)
        return CUDA_ERROR_INVALID_DEVICE;
    if (pool == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    cuda_lock();
    if (device->default_pool == NULL) {
        device->default_pool = calloc(1, sizeof **pool);
        if (device->default_pool != NULL)
            device->default_pool->device = number;
    }
    *pool = device->default_pool;
    cuda_unlock();
    return *pool == NULL ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

CUDA_API CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice device)
{
    return default_pool(pool, device);
}

CUDA_API CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice device)
{
    CUresult result = default_pool(pool, device);

    if (result == CUDA_SUCCESS && cuda_device(device)->pool != NULL)
        *pool = cuda_device(device)->pool;
    return result;
}

CUDA_API CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool)
{
    CUresult result = cuda_ready();

    if (result != CUDA_SUCCESS)
        return result;
    if (cuda_device(device) == NULL || pool == NULL || pool->device != device)
        return CUDA_ERROR_INVALID_VALUE;
    cuda_device(device)->pool = pool;
    return CUDA_SUCCESS;
}

CUDA_API CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *properties)
{
    CUresult result = cuda_ready();

    if (result != CUDA_SUCCESS)
        return result;
    if (pool == NULL || properties == NULL || properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
        return CUDA_ERROR_INVALID_VALUE;
    if (cuda_device(properties->location.id) == NULL)
        return CUDA_ERROR_INVALID_DEVICE;
    *pool = calloc(1, sizeof **pool);
    if (*pool == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    (*pool)->device = properties->location.id;
    return CUDA_SUCCESS;
}

/* Gives unused memory back to the card, but for keep bytes. The lock is held. */
static void trim(CUmemoryPool pool, uint64_t keep)
{
    uint64_t wanted = keep > pool->used ? cuda_pages(keep) : pool->used;

    if (pool->reserved > wanted) {
        node_tell(NULL, "give\t%u\t%llu", cuda_device(pool->device)->card.index,
                  (unsigned long long)(pool->reserved - wanted));
        pool->reserved = wanted;
    }
}

CUDA_API CUresult cuMemPoolDestroy(CUmemoryPool pool)
{
    CUresult result = cuda_ready();

    if (result != CUDA_SUCCESS)
        return result;
    if (pool == NULL || pool == cuda_device(pool->device)->default_pool || pool->used > 0)
        return CUDA_ERROR_INVALID_VALUE;
    cuda_lock();
    trim(pool, 0);
    if (cuda_device(pool->device)->pool == pool)
        cuda_device(pool->device)->pool = NULL;
    cuda_unlock();
    free(pool);
    return CUDA_SUCCESS;
}

CUDA_API CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep)
{
    CUresult result = cuda_ready();

    if (result != CUDA_SUCCESS || pool == NULL)
        return result == CUDA_SUCCESS ? CUDA_ERROR_INVALID_VALUE : result;
    cuda_lock();
    trim(pool, keep);
    cuda_unlock();
    return CUDA_SUCCESS;
}

static uint64_t *attribute_of(CUmemoryPool pool, int attribute)
{
    switch ((enum pool_attribute)attribute) {
    case RELEASE_THRESHOLD:
        return &pool->threshold;
    case RESERVED_CURRENT:
        return &pool->reserved;
    case RESERVED_HIGH:
        return &pool->reserved_high;
    case USED_CURRENT:
        return &pool->used;
    case USED_HIGH:
        return &pool->used_high;
    }
    return NULL;
}

CUDA_API CUresult cuMemPoolGetAttribute(CUmemoryPool pool, int attribute, void *value)
{
    uint64_t *place = pool == NULL ? NULL : attribute_of(pool, attribute);

    if (place == NULL || value == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *(uint64_t *)value = *place;
    return CUDA_SUCCESS;
}

/* The high-water marks can only be set to 0. */
CUDA_API CUresult cuMemPoolSetAttribute(CUmemoryPool pool, int attribute, void *value)
{
    uint64_t *place = pool == NULL ? NULL : attribute_of(pool, attribute);
    int settable = attribute == RELEASE_THRESHOLD || attribute == RESERVED_HIGH || attribute == USED_HIGH;

    if (place == NULL || value == NULL || !settable)
        return CUDA_ERROR_INVALID_VALUE;
    if (attribute != RELEASE_THRESHOLD && *(uint64_t *)value != 0)
        return CUDA_ERROR_INVALID_VALUE;
    *place = *(uint64_t *)value;
    return CUDA_SUCCESS;
}

/* Reserves more of the card's memory where the pool doesn't have enough. The lock is held. */
static CUresult grow(CUmemoryPool pool, size_t size)
{
    uint64_t missing = pool->used + size > pool->reserved ? pool->used + size - pool->reserved : 0;
    CUresult result = CUDA_SUCCESS;

    if (missing > 0)
        result = cuda_result(node_tell(NULL, "take\t%u\t%llu", cuda_device(pool->device)->card.index,
                                       (unsigned long long)missing));
    if (result != CUDA_SUCCESS)
        return result;
    pool->reserved += missing;
    pool->used += size;
    if (pool->reserved > pool->reserved_high)
        pool->reserved_high = pool->reserved;
    if (pool->used > pool->used_high)
        pool->used_high = pool->used;
    return CUDA_SUCCESS;
}

CUDA_API CUresult cuMemAllocFromPoolAsync(CUdeviceptr *pointer, size_t size, CUmemoryPool pool, CUstream stream)
{
    struct block block = {.size = size, .kind = BLOCK_POOL, .pool = pool};
    CUresult result;

    (void)stream; /* memory is there at once, so it is there in any order */
    if (cuda_current(&result) == NULL)
        return result;
    if (pointer == NULL || pool == NULL || size == 0)
        return CUDA_ERROR_INVALID_VALUE;
    cuda_lock();
    result = grow(pool, cuda_pages(size));
    if (result == CUDA_SUCCESS) {
        block.device = pool->device;
        block.address = address_space(size);
        if (block.address == 0 || block_add(block) == NULL) {
            pool->used -= cuda_pages(size);
            result = CUDA_ERROR_OUT_OF_MEMORY;
        }
    }
    cuda_unlock();
    if (result == CUDA_SUCCESS)
        *pointer = block.address;
    return result;
}

CUDA_API CUresult cuMemAllocAsync(CUdeviceptr *pointer, size_t size, CUstream stream)
{
    CUresult result;
    CUcontext context = cuda_current(&result);
    CUmemoryPool pool;

    if (context == NULL)
        return result;
    result = cuDeviceGetMemPool(&pool, context->device);
    return result == CUDA_SUCCESS ? cuMemAllocFromPoolAsync(pointer, size, pool, stream) : result;
}

CUDA_API CUresult cuMemFreeAsync(CUdeviceptr pointer, CUstream stream)
{
    CUresult result = cuda_ready();
    struct block *block;

    (void)stream;
    if (result != CUDA_SUCCESS)
        return result;
    cuda_lock();
    block = block_at(pointer);
    if (block == NULL || block->kind != BLOCK_POOL) {
        result = CUDA_ERROR_INVALID_VALUE;
    } else {
        CUmemoryPool pool = block->pool;

        pool->used -= cuda_pages(block->size);
        block_drop(block);
        trim(pool, pool->threshold);
    }
    cuda_unlock();
    return result;
}
