/* Device memory: every way to allocate it, and what a program is told about its size. */
#include "runtime.h"

RUNTIME_HOOK rtError_t rtMalloc(void **pointer, uint64_t size, uint32_t type, uint16_t module)
{
    return RUNTIME(rtMalloc)(pointer, size, type, module);
}

RUNTIME_HOOK rtError_t rtMallocCached(void **pointer, uint64_t size, uint32_t type, uint16_t module)
{
    return RUNTIME(rtMallocCached)(pointer, size, type, module);
}

RUNTIME_HOOK rtError_t rtDvppMalloc(void **pointer, uint64_t size, uint16_t module)
{
    return RUNTIME(rtDvppMalloc)(pointer, size, module);
}

RUNTIME_HOOK rtError_t rtDvppMallocWithFlag(void **pointer, uint64_t size, uint32_t flag, uint16_t module)
{
    return RUNTIME(rtDvppMallocWithFlag)(pointer, size, flag, module);
}

RUNTIME_HOOK rtError_t rtMemAlloc(void **pointer, uint64_t size, int policy, int advise, void *config)
{
    return RUNTIME(rtMemAlloc)(pointer, size, policy, advise, config);
}

RUNTIME_HOOK rtError_t rtMemAllocManaged(void **pointer, uint64_t size, uint32_t flag, uint16_t module)
{
    return RUNTIME(rtMemAllocManaged)(pointer, size, flag, module);
}

RUNTIME_HOOK rtError_t rtMallocPhysical(void **handle, size_t size, void *properties, uint64_t flags)
{
    return RUNTIME(rtMallocPhysical)(handle, size, properties, flags);
}

RUNTIME_HOOK rtError_t rtMemGetInfoEx(int kind, size_t *available, size_t *total)
{
    return RUNTIME(rtMemGetInfoEx)(kind, available, total);
}
