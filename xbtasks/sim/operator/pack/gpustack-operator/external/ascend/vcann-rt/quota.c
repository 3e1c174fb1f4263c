/* Memory is refused when what all processes of the device hold and what is asked for is more than the quota. */
#include <stddef.h>

#include "lock.h"
#include "log.h"
#include "memory.h"
#include "slice.h"

static int within_quota(uint64_t requested)
{
    const struct vnpu *vnpu = slice_vnpu();
    size_t used = 0, total;

    if (dcmi_memory_used(&vnpu->device, &used) != 0) {
        LOG_ERROR("get mem used failed.");
        return 0;
    }
    if (__builtin_add_overflow(requested, used, &total)) {
        LOG_ERROR("User requested mem size too big! Request:%zu B, used:%zu B, quota:%zu B.", (size_t)requested, used,
                  vnpu->memory_quota);
        return 0;
    }
    if (total > vnpu->memory_quota) {
        LOG_ERROR("Out of memory! Request:%zu B, used:%zu B, quota:%zu B.", (size_t)requested, used,
                  vnpu->memory_quota);
        return 0;
    }
    return 1;
}

rtError_t quota_enter(uint64_t requested, int *held)
{
    *held = slice_started() ? lock_enter() : -1;
    if (*held < 0) {
        LOG_ERROR("Guard memory failed to create file lock!");
        return ACL_ERROR_FAILURE;
    }
    if (!within_quota(requested)) {
        LOG_ERROR("Guard memory out of memory error for requested:%zu", (size_t)requested);
        quota_leave(*held);
        return ACL_ERROR_STORAGE_OVER_LIMIT;
    }
    return 0;
}

void quota_leave(int held)
{
    lock_leave(held);
}
