/* Device memory: every way to allocate it, and what a program is told about its size. */
#include "memory.h"

#include "log.h"
#include "slice.h"

/* Allocates with the runtime's own function if that is within the quota. The lock is held until the memory is
 * allocated, so that the next process counts it. */
#define WITHIN_QUOTA(size, name, ...)                   \
    ({                                                  \
        int held_;                                      \
        rtError_t failed_ = quota_enter(size, &held_);  \
        if (!failed_) {                                 \
            failed_ = RUNTIME(name)(__VA_ARGS__);       \
            quota_leave(held_);                         \
        }                                               \
        failed_;                                        \
    })

RUNTIME_HOOK rtError_t rtMalloc(void **pointer, uint64_t size, uint32_t type, uint16_t module)
{
    return WITHIN_QUOTA(size, rtMalloc, pointer, size, type, module);
}

RUNTIME_HOOK rtError_t rtMallocCached(void **pointer, uint64_t size, uint32_t type, uint16_t module)
{
    return WITHIN_QUOTA(size, rtMallocCached, pointer, size, type, module);
}

RUNTIME_HOOK rtError_t rtDvppMalloc(void **pointer, uint64_t size, uint16_t module)
{
    return WITHIN_QUOTA(size, rtDvppMalloc, pointer, size, module);
}

RUNTIME_HOOK rtError_t rtDvppMallocWithFlag(void **pointer, uint64_t size, uint32_t flag, uint16_t module)
{
    return WITHIN_QUOTA(size, rtDvppMallocWithFlag, pointer, size, flag, module);
}

RUNTIME_HOOK rtError_t rtMemAlloc(void **pointer, uint64_t size, int policy, int advise, void *config)
{
    return WITHIN_QUOTA(size, rtMemAlloc, pointer, size, policy, advise, config);
}

RUNTIME_HOOK rtError_t rtMemAllocManaged(void **pointer, uint64_t size, uint32_t flag, uint16_t module)
{
    return WITHIN_QUOTA(size, rtMemAllocManaged, pointer, size, flag, module);
}

RUNTIME_HOOK rtError_t rtMallocPhysical(void **handle, size_t size, void *properties, uint64_t flags)
{
    return WITHIN_QUOTA(size, rtMallocPhysical, handle, size, properties, flags);
}

/* The card is as large as the quota. */
RUNTIME_HOOK rtError_t rtMemGetInfoEx(int kind, size_t *available, size_t *total)
{
    const struct vnpu *vnpu = slice_vnpu();
    rtError_t failed = slice_start();
    size_t used;

    (void)kind;
    if (failed)
        return failed;
    if (dcmi_memory_used(&vnpu->device, &used) != 0) {
        LOG_ERROR("Get mem used failed.");
        return RUNTIME_INVALID_VALUE;
    }
    if (used > vnpu->memory_quota) {
        LOG_ERROR("Mem used is abnormally high, exceeding the quota.");
        return RUNTIME_INVALID_VALUE;
    }
    *available = vnpu->memory_quota - used;
    *total = vnpu->memory_quota;
    return RUNTIME_OK;
}
