/* How many kernels a second the device gets through. */
#include <stdlib.h>
#include <time.h>

#include "probe.h"

enum { NUMBERS = 4, AHEAD = 16 };

/* Each thread spins for a number of clock cycles. It is PTX for the oldest device that drivers of today serve;
 * the driver compiles it for the one that is there. */
static const char ptx[] =
    ".version 6.0\n"
    ".target sm_50\n"
    ".address_size 64\n"
    ".visible .entry spin(.param .u64 cycles)\n"
    "{\n"
    "    .reg .pred %more;\n"
    "    .reg .b64 %limit, %start, %time, %spent;\n"
    "    ld.param.u64 %limit, [cycles];\n"
    "    mov.u64 %start, %clock64;\n"
    "again:\n"
    "    mov.u64 %time, %clock64;\n"
    "    sub.s64 %spent, %time, %start;\n"
    "    setp.lt.u64 %more, %spent, %limit;\n"
    "    @%more bra again;\n"
    "    ret;\n"
    "}\n";

static double seconds(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* CUlaunchConfig */
struct configuration {
    unsigned int grid[3], block[3], shared;
    void *stream, *attributes;
    unsigned int count;
};

static int launch_one(void *function, unsigned int blocks, void **parameters, int extended)
{
    const struct configuration configuration = {{blocks, 1, 1}, {1, 1, 1}, 0, NULL, NULL, 0};

    if (extended)
        return CUDA(cuLaunchKernelEx, (const struct configuration *, void *, void **, void **), &configuration,
                    function, parameters, NULL);
    return CUDA(cuLaunchKernel,
                (void *, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int,
                 unsigned int, void *, void **, void **),
                function, blocks, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL);
}

static int launch(void *function, unsigned int blocks, uint64_t *cycles, int extended)
{
    void *parameters[] = {cycles};
    int result = 0;

    for (int i = 0; i < AHEAD && result == 0; i++)
        result = launch_one(function, blocks, parameters, extended);
    return result == 0 ? CUDA(cuCtxSynchronize, (void), ) : result;
}

/* rate:BLOCKS:CYCLES:WARM:MEASURE: launches, a few ahead of the device so that it never waits for a machine that
 * is busy; both times in milliseconds. rate-ex: the same, by cuLaunchKernelEx. */
void op_rate(char *values, int extended)
{
    uint64_t numbers[NUMBERS] = {0};
    void *module = NULL, *function = NULL;
    unsigned long launches = 0;
    double begun = 0, spent = 0;
    int result;

    for (int i = 0; i < NUMBERS; i++) {
        numbers[i] = strtoull(values, &values, 10);
        values += *values == ':';
    }
    result = CUDA(cuModuleLoadData, (void **, const void *), &module, ptx);
    if (result == 0)
        result = CUDA(cuModuleGetFunction, (void **, void *, const char *), &function, module, "spin");
    for (int stage = 2; stage < NUMBERS && result == 0; stage++) {
        launches = 0;
        begun = seconds();
        do {
            result = launch(function, (unsigned int)numbers[0], &numbers[1], extended);
            launches += AHEAD;
            spent = seconds() - begun;
        } while (result == 0 && spent * 1e3 < (double)numbers[stage]);
    }
    put("\"rc\":%d,\"launches\":%lu,\"microseconds\":%.0f", result, launches, spent * 1e6);
}
