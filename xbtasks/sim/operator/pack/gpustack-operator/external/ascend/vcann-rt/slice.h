/* The slice of this process, once it has set a device. */
#ifndef VRUNTIME_SLICE_H
#define VRUNTIME_SLICE_H

#include "runtime.h"
#include "vnpu.h"

enum { ACL_ERROR_UNINITIALIZE = 100001, ACL_ERROR_STORAGE_OVER_LIMIT = 300000, ACL_ERROR_FAILURE = 500001 };

/* Reads the slice and finds its device, once. Returns 0, or the code that the caller has to return: without a slice
 * nothing may run. */
rtError_t slice_start(void);

/* Lowers a quota that is more than the card has; once, after the runtime has set the device. */
void slice_settle(void);

/* Whether slice_start has succeeded. */
int slice_started(void);

/* What slice_start has found. */
const struct vnpu *slice_vnpu(void);

#endif
