#include "timeline.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

#include "state.h"

/* LATE: how late work may come and still follow the last at once. A process that waits for each of its kernels and
 * launches the next is a few microseconds late on a real card; here it is as late as this machine has other things to
 * do, which is no idleness of the card. Runtimes that hold launches back wait 10 ms at a time.
 * TOLD: work that follows on work is told of once in so long. Both in nanoseconds. */
enum { LATE = 9000000, TOLD = 5000000, PATH = 256 };

static _Atomic uint64_t *ends;

static struct {
    unsigned int card;
    uint64_t start, end, told; /* told: when the node was told of anything last */
} pending;

static _Atomic uint64_t *open_timeline(void)
{
    char path[PATH];
    void *place;
    int file;

    if (!node_file(path, sizeof path, "timeline"))
        return NULL;
    file = open(path, O_RDWR | O_CLOEXEC);
    if (file < 0)
        return NULL;
    place = mmap(NULL, SIM_CARDS * sizeof *ends, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    return place == MAP_FAILED ? NULL : place;
}

/* The lock is held. */
static int tell(uint64_t now)
{
    if (pending.start == pending.end)
        return 1;
    pending.told = now;
    if (!node_note("ran\t%u\t%llu\t%llu", pending.card, (unsigned long long)pending.start,
                   (unsigned long long)pending.end))
        return 0;
    pending.start = pending.end;
    return 1;
}

/* Adds a span to what the node is to be told: one that follows on another goes with it. */
static int note(unsigned int card, uint64_t start, uint64_t end, uint64_t now)
{
    int told = 1;

    cuda_lock();
    if (card != pending.card || start != pending.end) {
        told = tell(now);
        pending.card = card;
        pending.start = start;
    }
    pending.end = end;
    if (told && now - pending.told > TOLD)
        told = tell(now);
    cuda_unlock();
    return told;
}

int timeline_book(unsigned int card, uint64_t nanoseconds, uint64_t *end)
{
    uint64_t now = cuda_now(), last, start;

    cuda_lock();
    if (ends == NULL)
        ends = open_timeline();
    cuda_unlock();
    if (ends == NULL || card >= SIM_CARDS)
        return 0;
    last = atomic_load(&ends[card]);
    do
        start = last + LATE >= now ? last : now;
    while (!atomic_compare_exchange_weak(&ends[card], &last, start + nanoseconds));
    *end = start + nanoseconds;
    return note(card, start, *end, now);
}

void timeline_flush(void)
{
    cuda_lock();
    if (cuda_now() - pending.told > TOLD)
        tell(cuda_now());
    cuda_unlock();
}
