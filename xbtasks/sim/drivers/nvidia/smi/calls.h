/* NVML as nvidia-smi reaches it: opened when the program runs, every function looked up by name. */
#ifndef SIM_SMI_CALLS_H
#define SIM_SMI_CALLS_H

#include "../nvml/nvml.h"

/* A pointer to each function; NULL where the library has none of that name. */
#define CALL(name) __typeof__(&name) name;
struct calls {
#include "calls.def"
};
#undef CALL

/* Opens the library and looks everything up; tells whether there is one. */
int calls_open(struct calls *calls);

#endif
