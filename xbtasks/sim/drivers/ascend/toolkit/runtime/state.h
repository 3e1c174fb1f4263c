/* What the runtime's files share. */
#ifndef SIM_RUNTIME_STATE_H
#define SIM_RUNTIME_STATE_H

#include "hal.h"
#include "runtime.h"

/* The device that this thread has set; -1 if none. */
int current_device(void);

/* The runtime's code for one of the driver's. */
rtError_t runtime_code(drvError_t code);

/* Queues work of some length on this thread's device. */
rtError_t runtime_run(uint64_t nanoseconds);

#endif
