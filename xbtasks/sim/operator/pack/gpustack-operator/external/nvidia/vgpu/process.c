/* The start of CUDA in a process. */
#include <pthread.h>

#include "allocations.h"
#include "context.h"
#include "driver.h"
#include "hostpid.h"
#include "log.h"
#include "real.h"
#include "region.h"
#include "throttle.h"

/* Names the toolkit and commit that the library was built for: `strings` shows it. */
VGPU_HOOK const char vgpu_build[] = "vgpu build: " VGPU_BUILD;

static pthread_once_t before = PTHREAD_ONCE_INIT, after = PTHREAD_ONCE_INIT;

/* A child has none of its parent's contexts and threads, and starts CUDA for itself. */
static void become_child(void)
{
    pthread_once_t fresh = PTHREAD_ONCE_INIT;

    after = fresh;
    vgpu_throttle_stop();
    vgpu_forget_contexts();
    vgpu_forget_all();
}

static void start_before(void)
{
    vgpu_log_start();
    LOG_NOTICE("Initializing.....");
    vgpu_region_start();
    pthread_atfork(NULL, NULL, become_child);
}

static void start_after(void)
{
    int found = vgpu_find_host_pid();

    LOG_NOTICE("Initialized");
    if (!found)
        LOG_WARN("SET_TASK_PID FAILED - using container PID for accounting");
    vgpu_throttle_start(found);
}

VGPU_HOOK CUresult cuInit(unsigned int flags)
{
    CUresult result;

    pthread_once(&before, start_before);
    result = CUDA(cuInit)(flags);
    if (result != CUDA_SUCCESS) {
        LOG_ERROR("cuInit failed:%d", result);
        return result;
    }
    pthread_once(&after, start_after);
    return CUDA_SUCCESS;
}
