/* What the library knows: the devices, as this process numbers them, and its contexts. */
#ifndef SIM_CUDA_STATE_H
#define SIM_CUDA_STATE_H

#include "../common/cards.h"
#include "cuda.h"

struct CUctx_st {
    CUdevice device;
    unsigned int flags;
    int primary, uses; /* uses: a primary context lives while it is retained */
    uint64_t end;      /* when the last kernel given to it ends, in nanoseconds of the monotonic clock */
    CUcontext next;
};

struct device {
    struct sim_card card;
    struct CUctx_st primary;
    CUmemoryPool pool, default_pool;
};

/* Guards all that follows. Held for short: nobody waits for the card with it. */
void cuda_lock(void);
void cuda_unlock(void);

/* CUDA_SUCCESS in a process that has called cuInit. */
CUresult cuda_ready(void);
struct sim_driver *cuda_driver(void);

/* The device of that number, or NULL. */
struct device *cuda_device(CUdevice device);

/* The context in which the calling thread works: NULL and an error where it has none. */
CUcontext cuda_current(CUresult *result);
struct device *cuda_current_device(CUresult *result);

/* Whether the context lives. Takes the lock. */
int cuda_lives(CUcontext context);

/* What the node's answer means to a program. */
CUresult cuda_result(enum node_status status);

/* Frees what a context allocated. The lock is held. */
void cuda_free_all(CUcontext context);

/* Waits until that point of the monotonic clock. */
void cuda_sleep_until(uint64_t end);
uint64_t cuda_now(void);

/* Gives a card work for that long, in a stream; later work in it waits. */
CUresult cuda_run(CUcontext context, CUstream stream, uint64_t nanoseconds);

#endif
