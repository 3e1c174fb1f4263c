/* Kernel launches: where the rate of compute is held back. */
#include "driver.h"
#include "real.h"
#include "throttle.h"

VGPU_HOOK CUresult cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                                  unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                                  unsigned int block_z, unsigned int shared, CUstream stream, void **parameters,
                                  void **extra)
{
    vgpu_throttle((uint64_t)grid_x * grid_y * grid_z);
    return CUDA(cuLaunchKernel)(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream,
                                parameters, extra);
}

VGPU_HOOK CUresult cuLaunchKernel_ptsz(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                                       unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                                       unsigned int block_z, unsigned int shared, CUstream stream,
                                       void **parameters, void **extra)
{
    vgpu_throttle((uint64_t)grid_x * grid_y * grid_z);
    return CUDA(cuLaunchKernel_ptsz)(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream,
                                     parameters, extra);
}

static uint64_t blocks(const CUlaunchConfig *config)
{
    return config == NULL ? 0 : (uint64_t)config->gridDimX * config->gridDimY * config->gridDimZ;
}

VGPU_HOOK CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **parameters,
                                    void **extra)
{
    vgpu_throttle(blocks(config));
    return CUDA(cuLaunchKernelEx)(config, function, parameters, extra);
}

VGPU_HOOK CUresult cuLaunchKernelEx_ptsz(const CUlaunchConfig *config, CUfunction function, void **parameters,
                                         void **extra)
{
    vgpu_throttle(blocks(config));
    return CUDA(cuLaunchKernelEx_ptsz)(config, function, parameters, extra);
}
