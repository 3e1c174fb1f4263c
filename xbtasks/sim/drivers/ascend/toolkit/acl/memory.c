/* Memory. The size that an application asks for is rounded up, and most calls add a little. */
#include "acl.h"
#include "runtime.h"

enum { MODULE = 3 };

static aclError padded(uint64_t *size, uint64_t behind)
{
    if (*size == 0 || *size > UINT64_MAX - 2 * ACL_ALIGNMENT)
        return ACL_ERROR_INVALID_PARAM;
    *size = (*size + ACL_ALIGNMENT - 1) / ACL_ALIGNMENT * ACL_ALIGNMENT + behind;
    return ACL_SUCCESS;
}

ACL_API aclError aclrtMallocImpl(void **pointer, size_t size, int policy)
{
    aclError failed = padded(&size, ACL_ALIGNMENT);

    return failed || pointer == NULL ? ACL_ERROR_INVALID_PARAM : rtMalloc(pointer, size, (uint32_t)policy, MODULE);
}

ACL_API aclError aclrtMallocAlign32Impl(void **pointer, size_t size, int policy)
{
    aclError failed = padded(&size, 0);

    return failed || pointer == NULL ? ACL_ERROR_INVALID_PARAM : rtMalloc(pointer, size, (uint32_t)policy, MODULE);
}

ACL_API aclError aclrtMallocCachedImpl(void **pointer, size_t size, int policy)
{
    aclError failed = padded(&size, ACL_ALIGNMENT);

    return failed || pointer == NULL ? ACL_ERROR_INVALID_PARAM
                                     : rtMallocCached(pointer, size, (uint32_t)policy, MODULE);
}

ACL_API aclError aclrtMallocWithCfgImpl(void **pointer, size_t size, int policy, void *config)
{
    return pointer == NULL || size == 0 ? ACL_ERROR_INVALID_PARAM : rtsMalloc(pointer, size, policy, 0, config);
}

ACL_API aclError aclrtFreeImpl(void *pointer)
{
    return pointer == NULL ? ACL_ERROR_INVALID_PARAM : rtFree(pointer);
}

ACL_API aclError aclrtMallocHostImpl(void **pointer, size_t size)
{
    return rtMallocHost(pointer, size, MODULE);
}

ACL_API aclError aclrtFreeHostImpl(void *pointer)
{
    return rtFreeHost(pointer);
}

ACL_API aclError aclrtGetMemInfoImpl(int kind, size_t *available, size_t *total)
{
    return rtMemGetInfoEx(kind, available, total);
}

ACL_API aclError aclrtMemcpyImpl(void *target, size_t capacity, const void *source, size_t count, int kind)
{
    return rtMemcpy(target, capacity, source, count, kind);
}

ACL_API aclError aclrtMemsetImpl(void *target, size_t capacity, int32_t value, size_t count)
{
    return rtMemset(target, capacity, (uint32_t)value, count);
}

ACL_API aclError aclrtMallocPhysicalImpl(void **handle, size_t size, void *properties, uint64_t flags)
{
    return rtMallocPhysical(handle, size, properties, flags);
}

ACL_API aclError aclrtFreePhysicalImpl(void *handle)
{
    return rtFreePhysical(handle);
}

ACL_API aclError aclrtReserveMemAddressImpl(void **pointer, size_t size, size_t alignment, void *wish, uint64_t flags)
{
    return rtReserveMemAddress(pointer, size, alignment, wish, flags);
}

ACL_API aclError aclrtReleaseMemAddressImpl(void *pointer)
{
    return rtReleaseMemAddress(pointer);
}

ACL_API aclError aclrtMapMemImpl(void *pointer, size_t size, size_t offset, void *handle, uint64_t flags)
{
    return rtMapMem(pointer, size, offset, handle, flags);
}

ACL_API aclError aclrtUnmapMemImpl(void *pointer)
{
    return rtUnmapMem(pointer);
}
