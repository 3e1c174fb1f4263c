/* Memory of the host that the card can reach. */
#include "blocks.h"

static CUresult remember(void *pointer, size_t size, enum block_kind kind, CUcontext context)
{
    uint64_t address = (uint64_t)(uintptr_t)pointer;
    struct block block = {
        .address = address, .size = size, .kind = kind, .context = context, .device = context->device};
    int added;

    cuda_lock();
    added = block_add(block) != NULL;
    cuda_unlock();
    return added ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult forget(void *pointer, enum block_kind kind)
{
    CUresult result = cuda_ready();
    struct block *block;

    if (result != CUDA_SUCCESS)
        return result;
    cuda_lock();
    block = block_at((uint64_t)(uintptr_t)pointer);
    if (block != NULL && block->kind == kind)
        block_drop(block);
    else
        result = CUDA_ERROR_INVALID_VALUE;
    cuda_unlock();
    return result;
}

CUDA_API CUresult cuMemHostAlloc(void **pointer, size_t size, unsigned int flags)
{
    CUresult result;
    CUcontext context = cuda_current(&result);
    uint64_t address;

    if (context == NULL)
        return result;
    if (pointer == NULL || size == 0 || flags > 7)
        return CUDA_ERROR_INVALID_VALUE;
    address = address_space(size);
    if (address == 0)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (!address_space_open(address, size)) {
        address_space_free(address, size);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *pointer = (void *)(uintptr_t)address;
    return remember(*pointer, size, BLOCK_HOST, context);
}

CUDA_API CUresult cuMemAllocHost_v2(void **pointer, size_t size)
{
    return cuMemHostAlloc(pointer, size, 0);
}

CUDA_API CUresult cuMemFreeHost(void *pointer)
{
    return forget(pointer, BLOCK_HOST);
}

CUDA_API CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *device, void *pointer, unsigned int flags)
{
    CUresult result = cuda_ready();
    struct block *block;

    if (result != CUDA_SUCCESS)
        return result;
    if (device == NULL || flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    cuda_lock();
    block = block_around((uint64_t)(uintptr_t)pointer);
    if (block == NULL || (block->kind != BLOCK_HOST && block->kind != BLOCK_REGISTERED))
        result = CUDA_ERROR_INVALID_VALUE;
    else
        *device = (uint64_t)(uintptr_t)pointer; /* addresses are the same on both sides */
    cuda_unlock();
    return result;
}

CUDA_API CUresult cuMemHostRegister_v2(void *pointer, size_t size, unsigned int flags)
{
    CUresult result;
    CUcontext context = cuda_current(&result);

    if (context == NULL)
        return result;
    if (pointer == NULL || size == 0 || flags > 15)
        return CUDA_ERROR_INVALID_VALUE;
    return remember(pointer, size, BLOCK_REGISTERED, context);
}

CUDA_API CUresult cuMemHostUnregister(void *pointer)
{
    return forget(pointer, BLOCK_REGISTERED);
}
