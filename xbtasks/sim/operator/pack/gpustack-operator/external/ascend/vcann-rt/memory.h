/* The memory quota. */
#ifndef VRUNTIME_MEMORY_H
#define VRUNTIME_MEMORY_H

#include "runtime.h"

/* Takes the container's lock and sees whether so much more memory is within the quota: 0, or the code that the caller
 * has to return. After 0 the memory is to be allocated, and then quota_leave called. */
rtError_t quota_enter(uint64_t requested, int *held);
void quota_leave(int held);

#endif
