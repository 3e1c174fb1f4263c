/* Virtual memory management: address ranges, physical memory, and the mapping of one to the other. */
#include <stdlib.h>

#include "blocks.h"

struct mapping {
    uint64_t address;
    size_t size;
    struct block *range, *physical;
    struct mapping *next;
};

static struct mapping *mappings;

static int overlaps(uint64_t address, size_t size)
{
    for (struct mapping *mapping = mappings; mapping != NULL; mapping = mapping->next)
        if (address < mapping->address + mapping->size && mapping->address < address + size)
            return 1;
    return 0;
}

CUDA_API CUresult cuMemGetAllocationGranularity(size_t *granularity, const CUmemAllocationProp *properties, int option)
{
    CUresult result = cuda_ready();

    if (result != CUDA_SUCCESS)
        return result;
    if (granularity == NULL || properties == NULL || (option != 0 && option != 1))
        return CUDA_ERROR_INVALID_VALUE;
    *granularity = CUDA_PAGE;
    return CUDA_SUCCESS;
}

CUDA_API CUresult cuMemAddressReserve(CUdeviceptr *pointer, size_t size, size_t alignment, CUdeviceptr wanted,
                                      unsigned long long flags)
{
    struct block block = {.size = size, .kind = BLOCK_RESERVED};
    CUresult result = cuda_ready();

    (void)wanted; /* a wish that may be ignored */
    if (result != CUDA_SUCCESS)
        return result;
    if (pointer == NULL || size == 0 || size % CUDA_PAGE != 0 || (alignment & (alignment - 1)) != 0 || flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    block.address = address_space(size);
    cuda_lock();
    if (block.address == 0 || block_add(block) == NULL)
        result = CUDA_ERROR_OUT_OF_MEMORY;
    cuda_unlock();
    if (result == CUDA_SUCCESS)
        *pointer = block.address;
    return result;
}

CUDA_API CUresult cuMemAddressFree(CUdeviceptr pointer, size_t size)
{
    CUresult result = cuda_ready();
    struct block *block;

    if (result != CUDA_SUCCESS)
        return result;
    cuda_lock();
    block = block_at(pointer);
    if (block != NULL && block->kind == BLOCK_RESERVED && block->size == size && block->maps == 0)
        block_drop(block);
    else
        result = CUDA_ERROR_INVALID_VALUE;
    cuda_unlock();
    return result;
}

CUDA_API CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size, const CUmemAllocationProp *properties,
                              unsigned long long flags)
{
    static uint64_t handles;
    struct block block = {.size = size, .held = size, .kind = BLOCK_PHYSICAL};
    CUresult result = cuda_ready();

    if (result != CUDA_SUCCESS)
        return result;
    if (handle == NULL || properties == NULL || size == 0 || size % CUDA_PAGE != 0 || flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
        return CUDA_ERROR_NOT_SUPPORTED;
    block.device = properties->location.id;
    if (cuda_device(block.device) == NULL)
        return CUDA_ERROR_INVALID_DEVICE;
    result = cuda_result(node_tell(NULL, "take\t%u\t%zu", cuda_device(block.device)->card.index, size));
    if (result != CUDA_SUCCESS)
        return result;
    cuda_lock();
    block.address = ++handles; /* below any address */
    if (block_add(block) == NULL) {
        node_tell(NULL, "give\t%u\t%zu", cuda_device(block.device)->card.index, size);
        result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    cuda_unlock();
    if (result == CUDA_SUCCESS)
        *handle = block.address;
    return result;
}

static void drop_if_unused(struct block *physical)
{
    if (physical->released && physical->maps == 0)
        block_drop(physical);
}

CUDA_API CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
    CUresult result = cuda_ready();
    struct block *block;

    if (result != CUDA_SUCCESS)
        return result;
    cuda_lock();
    block = block_at(handle);
    if (block == NULL || block->kind != BLOCK_PHYSICAL || block->released) {
        result = CUDA_ERROR_INVALID_VALUE;
    } else {
        block->released = 1;
        drop_if_unused(block);
    }
    cuda_unlock();
    return result;
}

CUDA_API CUresult cuMemMap(CUdeviceptr pointer, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
                           unsigned long long flags)
{
    CUresult result = cuda_ready();
    struct mapping *fresh = malloc(sizeof *fresh);
    struct block *range, *physical;

    if (result != CUDA_SUCCESS || fresh == NULL) {
        free(fresh);
        return result != CUDA_SUCCESS ? result : CUDA_ERROR_OUT_OF_MEMORY;
    }
    cuda_lock();
    range = block_around(pointer);
    physical = block_at(handle);
    if (range == NULL || range->kind != BLOCK_RESERVED || pointer + size > range->address + range->size ||
        physical == NULL || physical->kind != BLOCK_PHYSICAL || offset != 0 || size != physical->size || flags != 0 ||
        overlaps(pointer, size)) {
        free(fresh);
        result = CUDA_ERROR_INVALID_VALUE;
    } else {
        *fresh = (struct mapping){pointer, size, range, physical, mappings};
        mappings = fresh;
        range->maps++;
        physical->maps++;
    }
    cuda_unlock();
    return result;
}

CUDA_API CUresult cuMemUnmap(CUdeviceptr pointer, size_t size)
{
    CUresult result = cuda_ready();
    struct mapping **link = &mappings, *found;

    if (result != CUDA_SUCCESS)
        return result;
    cuda_lock();
    while (*link != NULL && ((*link)->address != pointer || (*link)->size != size))
        link = &(*link)->next;
    found = *link;
    if (found == NULL) {
        result = CUDA_ERROR_INVALID_VALUE;
    } else {
        *link = found->next;
        found->range->maps--;
        found->physical->maps--;
        drop_if_unused(found->physical);
        free(found);
    }
    cuda_unlock();
    return result;
}

CUDA_API CUresult cuMemSetAccess(CUdeviceptr pointer, size_t size, const CUmemAccessDesc *access, size_t count)
{
    CUresult result = cuda_ready();

    if (result != CUDA_SUCCESS)
        return result;
    if (access == NULL || count == 0)
        return CUDA_ERROR_INVALID_VALUE;
    cuda_lock();
    result = overlaps(pointer, size) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    cuda_unlock();
    return result;
}
