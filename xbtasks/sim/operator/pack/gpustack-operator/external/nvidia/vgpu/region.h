/* What the processes that share a cache file share: the limits, and how much each of them uses. */
#ifndef VGPU_REGION_H
#define VGPU_REGION_H

#include <stdint.h>
#include <sys/types.h>

#include "limits.h"

/* Opens the cache file, once in a process, and takes a place in it. Its first user fixes the limits. Ends the program
 * where there can't be one: it would run without limits. */
void vgpu_region_start(void);

uint64_t vgpu_memory_limit(int device);
uint64_t vgpu_compute_limit(int device);

/* How much of a device all processes use. */
uint64_t vgpu_used(int device);

/* Books so many bytes, if they keep within the limit; tells whether they do. */
int vgpu_book(int device, uint64_t size);

/* Books them whether they keep within it or not. */
void vgpu_book_context(int device, uint64_t size);

/* Takes them off again. */
void vgpu_unbook(int device, uint64_t size);

/* The host's number of this process, and whether another one is that of a process with a place here. */
void vgpu_set_host_pid(int pid);
int vgpu_is_ours(int host_pid);

/* One process at a time between these two: finding out the host's number needs quiet. */
void vgpu_quiet_begin(void);
void vgpu_quiet_end(void);

#endif
