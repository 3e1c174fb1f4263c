/* Device memory that is had at once: cuMemAlloc and its kin; and how much there is. */
#include "blocks.h"

static CUresult allocate(CUdeviceptr *pointer, size_t size, enum block_kind kind)
{
    CUresult result;
    CUcontext context = cuda_current(&result);
    struct block block = {.size = size, .kind = kind, .context = context};

    if (context == NULL)
        return result;
    if (pointer == NULL || size == 0)
        return CUDA_ERROR_INVALID_VALUE;
    block.device = context->device;
    /* Managed memory moves to the card when a kernel touches it: it may be more than the card has. */
    block.held = kind == BLOCK_MANAGED ? 0 : cuda_pages(size);
    if (block.held > 0)
        result = cuda_result(node_tell(NULL, "take\t%u\t%zu", cuda_device(block.device)->card.index, block.held));
    if (result != CUDA_SUCCESS)
        return result;
    block.address = address_space(size);
    cuda_lock();
    if (block.address == 0 || block_add(block) == NULL) {
        node_tell(NULL, "give\t%u\t%zu", cuda_device(block.device)->card.index, block.held);
        result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    cuda_unlock();
    if (result == CUDA_SUCCESS)
        *pointer = block.address;
    return result;
}

CUDA_API CUresult cuMemAlloc_v2(CUdeviceptr *pointer, size_t size)
{
    return allocate(pointer, size, BLOCK_DEVICE);
}

CUDA_API CUresult cuMemAllocPitch_v2(CUdeviceptr *pointer, size_t *pitch, size_t width, size_t height,
                                     unsigned int element)
{
    CUresult result;

    if (pitch == NULL || width == 0 || height == 0 || (element != 4 && element != 8 && element != 16))
        return CUDA_ERROR_INVALID_VALUE;
    result = allocate(pointer, (width + 511) / 512 * 512 * height, BLOCK_DEVICE);
    if (result == CUDA_SUCCESS)
        *pitch = (width + 511) / 512 * 512;
    return result;
}

CUDA_API CUresult cuMemAllocManaged(CUdeviceptr *pointer, size_t size, unsigned int flags)
{
    enum { ATTACH_GLOBAL = 1, ATTACH_HOST = 2 };
    CUresult result;

    if (flags != ATTACH_GLOBAL && flags != ATTACH_HOST)
        return CUDA_ERROR_INVALID_VALUE;
    result = allocate(pointer, size, BLOCK_MANAGED);
    /* The program itself may use the pointer. */
    if (result == CUDA_SUCCESS && !address_space_open(*pointer, size)) {
        cuMemFree_v2(*pointer);
        result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    return result;
}

CUDA_API CUresult cuMemFree_v2(CUdeviceptr pointer)
{
    CUresult result = cuda_ready();
    struct block *block;

    if (result != CUDA_SUCCESS || pointer == 0)
        return result;
    cuda_lock();
    block = block_at(pointer);
    if (block != NULL && (block->kind == BLOCK_DEVICE || block->kind == BLOCK_MANAGED || block->kind == BLOCK_POOL))
        block_drop(block);
    else
        result = CUDA_ERROR_INVALID_VALUE;
    cuda_unlock();
    return result;
}

CUDA_API CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *size, CUdeviceptr pointer)
{
    CUresult result = cuda_ready();
    struct block *block;

    if (result != CUDA_SUCCESS)
        return result;
    cuda_lock();
    block = block_around(pointer);
    if (block == NULL)
        result = CUDA_ERROR_NOT_FOUND;
    if (block != NULL && base != NULL)
        *base = block->address;
    if (block != NULL && size != NULL)
        *size = block->size;
    cuda_unlock();
    return result;
}

CUDA_API CUresult cuMemGetInfo_v2(size_t *available, size_t *total)
{
    CUresult result;
    struct device *device = cuda_current_device(&result);
    uint64_t used;

    if (device == NULL || available == NULL || total == NULL)
        return device == NULL ? result : CUDA_ERROR_INVALID_VALUE;
    result = cuda_result(node_tell(&used, "memory\t%u", device->card.index));
    if (result == CUDA_SUCCESS) {
        *total = device->card.memory - device->card.reserved;
        *available = *total - used;
    }
    return result;
}
