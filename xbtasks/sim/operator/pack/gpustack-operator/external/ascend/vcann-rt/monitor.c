/* enpu-monitor: prints the slice of its container and how much of its memory is used. */
#include <stdio.h>
#include <stdlib.h>

#include "config.h"
#include "dcmi.h"
#include "log.h"
#include "vnpu.h"

/* Names the toolkit and commit that the program was built for: `strings` shows it. */
__attribute__((used)) static const char build[] = "enpu-monitor build: " VRUNTIME_BUILD;

enum { MEBIBYTE = 1 << 20 };

static void print_slice(const struct config *config, size_t used)
{
    long aicore = config->scheduling_policy == POLICY_BEST_EFFORT ? 0 : config->aicore_quota;

    fprintf(stderr, "       Aicore Limit Quota(%%)     : %ld\n", aicore);
    fprintf(stderr, "       Memory Limit quota(MB)    : %ld\n", config->memory_quota);
    fprintf(stderr, "       Memory Usage(MB)          : %zu\n", used / MEBIBYTE);
}

int main(int count, char **arguments)
{
    struct config config;
    struct device device;
    size_t used;
    int code;

    if (log_open() != 0)
        return EXIT_FAILURE;
    if (count > 1) {
        fprintf(stderr, "Invalid option : %s\n", arguments[1]);
        return EXIT_FAILURE;
    }
    if (config_load(VNPU_CONFIG, &config) != 0)
        return EXIT_FAILURE;
    code = dcmi_find(soc_generation(), (unsigned int)config.physical_npu_id, &device);
    if (code != 0) {
        LOG_ERROR("Failed to find NPU %ld: dcmi returned %d", config.physical_npu_id, code);
        return code; /* the shell sees it modulo 256 */
    }
    LOG_INFO("Successfully to initialize vnpu device.");
    if (dcmi_memory_used(&device, &used) != 0) {
        LOG_ERROR("Failed to read the memory usage of NPU %ld", config.physical_npu_id);
        return EXIT_FAILURE;
    }
    print_slice(&config, used);
    return EXIT_SUCCESS;
}
