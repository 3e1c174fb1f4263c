/* Starts everything when a process first sets a device: log, configuration, device, memory, scheduling. */
#define _DEFAULT_SOURCE
#include "slice.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "lock.h"
#include "log.h"
#include "schedule.h"

/* Names the toolkit and commit that the library was built for: `strings` shows it. */
__attribute__((used)) static const char build[] = "vruntime build: " VRUNTIME_BUILD;

enum { MEMORY_HBM = 1 };

static struct vnpu vnpu;
static atomic_bool started;

static int start_all(void)
{
    enum soc soc;

    if (vnpu_configure(&vnpu) != 0 || soc_find(&soc) != 0 || vnpu_find_device(&vnpu, soc) != 0)
        return 1;
    if (lock_prepare() != 0 || schedule_start(&vnpu) != 0)
        return 1;
    return setenv("ENPU_ENABLE", "True", 1);
}

static void start(void)
{
    if (start_all() != 0)
        return;
    started = 1;
    LOG_INFO("Successfully to initialize all module.");
}

rtError_t slice_start(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    int failed = log_open();

    if (failed)
        return failed;
    pthread_once(&once, start);
    if (started)
        return 0;
    LOG_ERROR("Failed to initialize vcann-rt, please check the config file in %s.", VNPU_CONFIG);
    return ACL_ERROR_UNINITIALIZE;
}

static void settle(void)
{
    size_t available = 0, total = 0;
    rtError_t failed = RUNTIME(rtMemGetInfoEx)(MEMORY_HBM, &available, &total);

    if (failed) {
        LOG_ERROR("Get available HBM size failed! ret:%d.", failed);
    } else if (vnpu.memory_quota > total) {
        LOG_WARN("User applied HBM size:%zu is bigger than total HBM size:%zu, now set mem_limit_quota to %zu.",
                 vnpu.memory_quota, total, total);
        vnpu.memory_quota = total;
    }
}

void slice_settle(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, settle);
}

int slice_started(void)
{
    return started;
}

const struct vnpu *slice_vnpu(void)
{
    return &vnpu;
}
