/* Modules: PTX text, and the kernels that it defines. */
#ifndef SIM_CUDA_MODULE_H
#define SIM_CUDA_MODULE_H

#include "state.h"

struct CUfunc_st {
    char name[256];
    CUmodule module;
    CUfunction next;
};

/* How long one thread of a kernel runs, in nanoseconds. */
uint64_t kernel_thread_time(CUfunction function, void **parameters, const struct sim_card *card);

/* Whether the function is one of a loaded module's. */
int kernel_exists(CUfunction function);

#endif
