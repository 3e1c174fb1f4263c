/* What this process has allocated, so that freeing it takes off as much as was booked. */
#ifndef VGPU_ALLOCATIONS_H
#define VGPU_ALLOCATIONS_H

#include <stddef.h>
#include <stdint.h>

/* The device of the context that is current in this thread; -1 where there is none. */
int vgpu_current_device(void);

/* Remembers an allocation that is booked. What can't be remembered stays booked until the process ends. */
void vgpu_remember(uint64_t key, int device, uint64_t size);

/* Forgets it and takes it off; nothing where it isn't known. */
void vgpu_forget(uint64_t key);

/* In a child, which has none of its parent's. */
void vgpu_forget_all(void);

#endif
