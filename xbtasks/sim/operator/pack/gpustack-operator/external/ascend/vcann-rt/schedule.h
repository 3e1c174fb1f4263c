/* The share of the card's time. */
#ifndef VRUNTIME_SCHEDULE_H
#define VRUNTIME_SCHEDULE_H

#include "vnpu.h"

/* Joins the card's shared memory. Returns 0, or 1 where that can't be had. */
int schedule_start(const struct vnpu *vnpu);

/* Waits until this virtual NPU may give the card work. */
void schedule_enter(void);

#endif
