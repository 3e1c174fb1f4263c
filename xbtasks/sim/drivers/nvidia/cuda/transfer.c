/* Copies and fills. What was written can be read again; a fill takes the card as long as its memory would. */
#include <string.h>

#include "blocks.h"

enum { BYTES_PER_NANOSECOND = 1000 };

static void *bytes(CUdeviceptr pointer)
{
    return (void *)(uintptr_t)pointer;
}

/* Whether size bytes from there on lie in something that was allocated; opens them. */
static int reaches(CUdeviceptr pointer, size_t size)
{
    struct block *block;
    int inside;

    cuda_lock();
    block = block_around(pointer);
    inside = block != NULL && size <= block->address + block->size - pointer;
    if (inside && block->kind != BLOCK_HOST && block->kind != BLOCK_REGISTERED)
        inside = address_space_open(pointer, size);
    cuda_unlock();
    return inside;
}

static CUresult copy(void *to, const void *from, size_t size, CUdeviceptr to_device, CUdeviceptr from_device,
                     CUstream stream)
{
    CUresult result;

    if (cuda_current(&result) == NULL)
        return result;
    if (size == 0)
        return CUDA_SUCCESS;
    if ((to_device != 0 && !reaches(to_device, size)) || (from_device != 0 && !reaches(from_device, size)))
        return CUDA_ERROR_INVALID_VALUE;
    result = cuStreamSynchronize(stream); /* copies take no time of their own, but keep their place */
    if (result == CUDA_SUCCESS)
        memmove(to, from, size);
    return result;
}

CUDA_API CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t size, CUstream stream)
{
    return copy(bytes(to), from, size, to, 0, stream);
}

CUDA_API CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t size)
{
    return copy(bytes(to), from, size, to, 0, NULL);
}

CUDA_API CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t size, CUstream stream)
{
    return copy(to, bytes(from), size, 0, from, stream);
}

CUDA_API CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t size)
{
    return copy(to, bytes(from), size, 0, from, NULL);
}

CUDA_API CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream)
{
    return copy(bytes(to), bytes(from), size, to, from, stream);
}

CUDA_API CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t size)
{
    return copy(bytes(to), bytes(from), size, to, from, NULL);
}

/* With unified addresses either side may be the card's or the host's. */
CUDA_API CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream)
{
    struct block *target, *source;

    cuda_lock();
    target = block_around(to);
    source = block_around(from);
    cuda_unlock();
    return copy(bytes(to), bytes(from), size, target == NULL ? 0 : to, source == NULL ? 0 : from, stream);
}

CUDA_API CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t size)
{
    return cuMemcpyAsync(to, from, size, NULL);
}

static CUresult fill(CUdeviceptr to, unsigned int value, size_t count, size_t width, CUstream stream)
{
    CUresult result;
    CUcontext context = cuda_current(&result);

    if (context == NULL)
        return result;
    if (count == 0)
        return CUDA_SUCCESS;
    if (to % width != 0 || !reaches(to, count * width))
        return CUDA_ERROR_INVALID_VALUE;
    if (width == 1)
        memset(bytes(to), (int)value, count);
    else
        for (size_t i = 0; i < count; i++)
            memcpy((char *)bytes(to) + i * width, &value, width);
    return cuda_run(context, stream, 1000 + count * width / BYTES_PER_NANOSECOND);
}

CUDA_API CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream)
{
    return fill(to, value, count, 1, stream);
}

CUDA_API CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char value, size_t count)
{
    return fill(to, value, count, 1, NULL);
}

CUDA_API CUresult cuMemsetD32Async(CUdeviceptr to, unsigned int value, size_t count, CUstream stream)
{
    return fill(to, value, count, 4, stream);
}

CUDA_API CUresult cuMemsetD32_v2(CUdeviceptr to, unsigned int value, size_t count)
{
    return fill(to, value, count, 4, NULL);
}
