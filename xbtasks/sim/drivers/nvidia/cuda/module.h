/* Modules: PTX text, and the kernels that it defines. */
#ifndef SIM_CUDA_MODULE_H
#define SIM_CUDA_MODULE_H

#include "ptx.h"
#include "state.h"

struct CUfunc_st {
    char name[PTX_NAME];
    struct ptx *code;
    CUfunction next;
    unsigned char values[PTX_PARAMETERS * sizeof(uint64_t)]; /* of the last launch, and what it took then */
    uint64_t cycles;
};

/* How many clock cycles one thread of a kernel takes with these parameters. */
uint64_t kernel_cycles(CUfunction function, void **parameters, int clock_mhz);

/* Whether a launch with these parameters is complete. */
int kernel_takes(CUfunction function, void **parameters);

/* Whether the function is one of a loaded module's. */
int kernel_exists(CUfunction function);

#endif
