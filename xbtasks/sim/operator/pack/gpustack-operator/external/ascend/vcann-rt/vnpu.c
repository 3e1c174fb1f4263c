/* Starts the virtual NPU when a process first sets a device: log, configuration, device. */
#include "vnpu.h"

#include <pthread.h>

#include "log.h"

/* Names the toolkit and commit that the library was built for: `strings` shows it. */
__attribute__((used)) static const char build[] = "vruntime build: " VRUNTIME_BUILD;

static struct vnpu vnpu;
static int outcome = VNPU_INIT_FAILED;

static void start(void)
{
    int code;

    if (log_open() != 0 || config_load(VNPU_CONFIG, &vnpu.config) != 0)
        return;
    code = dcmi_find(soc_generation(), (unsigned int)vnpu.config.physical_npu_id, &vnpu.device);
    if (code != 0) {
        LOG_ERROR("Failed to find NPU %ld: dcmi returned %d", vnpu.config.physical_npu_id, code);
        return;
    }
    LOG_INFO("Successfully to initialize vnpu device.");
    LOG_INFO("Successfully to initialize all module.");
    outcome = 0;
}

int vnpu_start(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, start);
    return outcome;
}
