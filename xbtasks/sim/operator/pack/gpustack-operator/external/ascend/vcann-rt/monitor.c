/* enpu-monitor: prints the slice of its container and how much of its memory is used. */
#define _DEFAULT_SOURCE
#include <stdio.h>
#include <stdlib.h>

#include "log.h"
#include "vnpu.h"

/* Names the toolkit and commit that the program was built for: `strings` shows it. */
__attribute__((used)) static const char build[] = "enpu-monitor build: " VRUNTIME_BUILD;

static int print_slice(const struct vnpu *vnpu)
{
    const struct config *config = &vnpu->config;
    size_t used;

    if (dcmi_memory_used(&vnpu->device, &used) != 0) {
        LOG_ERROR("Failed to get device resource info.");
        return EXIT_FAILURE;
    }
    fprintf(stderr, "       Aicore Limit Quota(%%)     : %d\n",
            config->scheduling_policy == POLICY_BEST_EFFORT ? 0 : config->aicore_quota);
    fprintf(stderr, "       Memory Limit quota(MB)    : %zu\n", vnpu->memory_quota / VNPU_MEBIBYTE);
    fprintf(stderr, "       Memory Usage(MB)          : %zu\n", used / VNPU_MEBIBYTE);
    return EXIT_SUCCESS;
}

int main(int count, char **arguments)
{
    struct vnpu vnpu;
    enum soc soc;
    int code;

    if (log_open() != 0)
        return EXIT_FAILURE;
    if (count > 1) {
        fprintf(stderr, "Invalid option : %s\n", arguments[1]);
        return EXIT_FAILURE;
    }
    unsetenv("ENPU_LOG_LEVEL");
    if (soc_find(&soc) != 0 || vnpu_configure(&vnpu) != 0)
        return EXIT_FAILURE;
    code = vnpu_find_device(&vnpu, soc);
    return code != 0 ? code : print_slice(&vnpu); /* the shell sees a code modulo 256 */
}
