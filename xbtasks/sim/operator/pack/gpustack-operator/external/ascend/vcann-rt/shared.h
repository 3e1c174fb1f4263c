/* The shared memory of all containers that have a slice of the card: who is alive, and who works. */
#ifndef VRUNTIME_SHARED_H
#define VRUNTIME_SHARED_H

#include <stdatomic.h>
#include <stdint.h>

#include "config.h"

/* Times are those of the monotonic clock, which is one for the whole host. */
struct shared_vnpu {
    _Atomic uint64_t alive_ns, work_ns;
    _Atomic uint32_t quota; /* per cent */
    uint32_t unused;
};

struct shared {
    _Atomic uint64_t magic;
    struct shared_vnpu vnpus[MOST_VNPUS];
};

/* Maps the memory of that name, making it if it isn't there; what isn't ours in it is cleared. Null on failure. */
struct shared *shared_open(const char *name);

#endif
