/* Device memory, by every call that libvruntime hooks. */
#include <stdlib.h>
#include <string.h>

#include "state.h"

static rtError_t take(void **pointer, uint64_t size)
{
    if (pointer == NULL || size == 0)
        return ACL_ERROR_RT_PARAM_INVALID;
    if (current_device() < 0)
        return ACL_ERROR_RT_CONTEXT_NULL;
    return runtime_code(halMemAlloc(pointer, size, (uint32_t)current_device()));
}

rtError_t rtMalloc(void **pointer, uint64_t size, uint32_t type, uint16_t module)
{
    (void)type, (void)module;
    return take(pointer, size);
}

rtError_t rtMallocCached(void **pointer, uint64_t size, uint32_t type, uint16_t module)
{
    (void)type, (void)module;
    return take(pointer, size);
}

RT_API rtError_t rtDvppMalloc(void **pointer, uint64_t size, uint16_t module)
{
    (void)module;
    return take(pointer, size);
}

RT_API rtError_t rtDvppMallocWithFlag(void **pointer, uint64_t size, uint32_t flag, uint16_t module)
{
    (void)flag, (void)module;
    return take(pointer, size);
}

rtError_t rtMemAlloc(void **pointer, uint64_t size, int policy, int advise, void *config)
{
    (void)policy, (void)advise, (void)config;
    return take(pointer, size);
}

/* As in CANN it goes by rtMemAlloc, whoever has that name. */
rtError_t rtsMalloc(void **pointer, uint64_t size, int policy, int advise, void *config)
{
    return rtMemAlloc(pointer, size, policy, advise, config);
}

RT_API rtError_t rtMemAllocManaged(void **pointer, uint64_t size, uint32_t flag, uint16_t module)
{
    (void)flag, (void)module;
    return take(pointer, size);
}

static rtError_t give(void *pointer)
{
    return pointer == NULL ? ACL_ERROR_RT_PARAM_INVALID : runtime_code(halMemFree(pointer));
}

rtError_t rtFree(void *pointer)
{
    return give(pointer);
}

RT_API rtError_t rtsFree(void *pointer)
{
    return give(pointer);
}

RT_API rtError_t rtDvppFree(void *pointer)
{
    return give(pointer);
}

RT_API rtError_t rtMemFreeManaged(void *pointer)
{
    return give(pointer);
}

rtError_t rtMallocHost(void **pointer, uint64_t size, uint16_t module)
{
    (void)module;
    if (pointer == NULL || size == 0)
        return ACL_ERROR_RT_PARAM_INVALID;
    *pointer = malloc(size);
    return *pointer == NULL ? ACL_ERROR_RT_MEMORY_ALLOCATION : RT_ERROR_NONE;
}

rtError_t rtFreeHost(void *pointer)
{
    free(pointer);
    return RT_ERROR_NONE;
}

rtError_t rtMemGetInfoEx(int kind, size_t *available, size_t *total)
{
    struct hal_memory memory;
    drvError_t failed;

    (void)kind; /* a die has memory of one kind only */
    if (available == NULL || total == NULL)
        return ACL_ERROR_RT_PARAM_INVALID;
    if (current_device() < 0)
        return ACL_ERROR_RT_CONTEXT_NULL;
    failed = halMemGetInfo((uint32_t)current_device(), &memory);
    if (!failed) {
        *available = memory.available;
        *total = memory.total;
    }
    return runtime_code(failed);
}

RT_API rtError_t rtMemGetInfo(size_t *available, size_t *total)
{
    return rtMemGetInfoEx(0, available, total);
}

rtError_t rtMemcpy(void *target, uint64_t capacity, const void *source, uint64_t count, int kind)
{
    (void)kind;
    if (target == NULL || source == NULL || count > capacity)
        return ACL_ERROR_RT_PARAM_INVALID;
    memmove(target, source, count);
    return RT_ERROR_NONE;
}

rtError_t rtMemset(void *target, uint64_t capacity, uint32_t value, uint64_t count)
{
    if (target == NULL || count > capacity)
        return ACL_ERROR_RT_PARAM_INVALID;
    memset(target, (int)value, count);
    return RT_ERROR_NONE;
}
