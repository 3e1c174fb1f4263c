/* Kernel launches: how long a grid keeps the card busy, and how far a program may run ahead of it. */
#include "module.h"

enum { QUEUE = 1024, LAUNCH_NANOSECONDS = 3000 };

/* A program that has this many launches unfinished waits for the oldest. */
static void wait_for_room(uint64_t end)
{
    static uint64_t ends[QUEUE];
    static unsigned int next;
    uint64_t oldest;

    cuda_lock();
    oldest = ends[next % QUEUE];
    ends[next++ % QUEUE] = end;
    cuda_unlock();
    if (oldest > cuda_now())
        cuda_sleep_until(oldest);
}

/* A multiprocessor holds so many blocks at a time; the grid runs in waves of them. */
static uint64_t waves(const struct sim_card *card, uint64_t blocks, uint64_t threads)
{
    uint64_t resident = (uint64_t)card->threads / threads;

    if (resident > (uint64_t)card->blocks)
        resident = (uint64_t)card->blocks;
    if (resident == 0)
        resident = 1;
    resident *= (uint64_t)card->multiprocessors;
    return (blocks + resident - 1) / resident;
}

static CUresult launch(CUfunction function, const CUlaunchConfig *config, void **parameters, void **extra)
{
    CUresult result;
    CUcontext context = cuda_current(&result);
    const struct sim_card *card;
    uint64_t blocks, threads, cycles;

    if (context == NULL)
        return result;
    if (!kernel_exists(function))
        return CUDA_ERROR_INVALID_HANDLE;
    blocks = (uint64_t)config->gridDimX * config->gridDimY * config->gridDimZ;
    threads = (uint64_t)config->blockDimX * config->blockDimY * config->blockDimZ;
    if (blocks == 0 || threads == 0 || threads > 1024 || config->gridDimX > 2147483647u ||
        config->gridDimY > 65535 || config->gridDimZ > 65535)
        return CUDA_ERROR_INVALID_VALUE;
    if (extra != NULL)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (!kernel_takes(function, parameters))
        return CUDA_ERROR_INVALID_VALUE;
    card = &cuda_device(context->device)->card;
    cycles = waves(card, blocks, threads) * kernel_cycles(function, parameters, card->clock_mhz);
    result = cuda_run(context, config->hStream, LAUNCH_NANOSECONDS + cycles * 1000 / (uint64_t)card->clock_mhz);
    if (result == CUDA_SUCCESS)
        wait_for_room(context->end);
    return result;
}

CUDA_API CUresult cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                                 unsigned int block_x, unsigned int block_y, unsigned int block_z,
                                 unsigned int shared, CUstream stream, void **parameters, void **extra)
{
    CUlaunchConfig config = {grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream, NULL, 0};

    return launch(function, &config, parameters, extra);
}

CUDA_API CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **parameters, void **extra)
{
    return config == NULL ? CUDA_ERROR_INVALID_VALUE : launch(function, config, parameters, extra);
}

CUDA_API CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                                            unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                                            unsigned int block_z, unsigned int shared, CUstream stream,
                                            void **parameters)
{
    CUlaunchConfig config = {grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream, NULL, 0};

    return launch(function, &config, parameters, NULL);
}
