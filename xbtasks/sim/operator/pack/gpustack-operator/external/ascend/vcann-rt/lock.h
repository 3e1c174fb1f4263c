/* The lock that makes the container's processes allocate one after the other. */
#ifndef VRUNTIME_LOCK_H
#define VRUNTIME_LOCK_H

/* Makes the lock's folder. Returns 0, or 1 where it can't. */
int lock_prepare(void);

/* Waits for the lock. Returns what lock_leave takes, or -1 where it can't be had. */
int lock_enter(void);
void lock_leave(int held);

#endif
