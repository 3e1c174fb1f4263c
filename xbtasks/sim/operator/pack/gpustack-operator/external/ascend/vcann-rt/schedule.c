/* Time is cut into periods, and each period into slices, one for each virtual NPU that is alive, as long as its quota.
 * Work may be given to the card in one's own slice. With the elastic policy also in time that is nobody's, and in the
 * slice of somebody who has no work, unless the card is busy. Work that runs on behind the slice's end is made up
 * for in the next ones. */
#define _DEFAULT_SOURCE
#include "schedule.h"

#include <pthread.h>
#include <stddef.h>
#include <time.h>

#include "log.h"
#include "runtime.h"
#include "shared.h"

#define NS_PER_MS UINT64_C(1000000)
#define PERIOD_NS (100 * NS_PER_MS)
#define GONE_NS (3 * PERIOD_NS)
enum { NOBODY = -1, WHOLE = 100, BUSY = 90 };

static struct shared *shared;
static const struct vnpu *mine;
static _Atomic uint32_t utilization;
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 * NS_PER_MS + (uint64_t)now.tv_nsec;
}

static void sleep_ns(uint64_t length)
{
    struct timespec time = {.tv_nsec = (long)length};

    nanosleep(&time, NULL);
}

static int recent(uint64_t then, uint64_t now, uint64_t limit)
{
    return then != 0 && (then > now || now - then < limit);
}

static void *stay_alive(void *unused)
{
    struct shared_vnpu *me = &shared->vnpus[mine->config.virtual_npu_id];
    unsigned int percent = 0;

    for (;;) {
        me->alive_ns = now_ns();
        if (mine->config.scheduling_policy == POLICY_ELASTIC && dcmi_utilization(&mine->device, &percent) == 0)
            utilization = percent;
        sleep_ns(PERIOD_NS);
    }
    return unused;
}

int schedule_start(const struct vnpu *vnpu)
{
    pthread_t thread;

    mine = vnpu;
    shared = shared_open(vnpu->config.shm_id);
    if (shared == NULL) {
        LOG_ERROR("Failed to mmap share memory.");
        return 1;
    }
    if (vnpu->config.scheduling_policy != POLICY_BEST_EFFORT)
        shared->vnpus[vnpu->config.virtual_npu_id].quota = (uint32_t)vnpu->config.aicore_quota;
    shared->vnpus[vnpu->config.virtual_npu_id].alive_ns = now_ns();
    if (pthread_create(&thread, NULL, stay_alive, NULL) != 0) {
        LOG_ERROR("Failed to create vnpu alive thread.");
        return 1;
    }
    pthread_detach(thread);
    return 0;
}

/* Whose slice it is. Where the quotas are more than the whole, the slices are shorter. */
static int owner(uint64_t now)
{
    uint32_t total = 0;
    uint64_t end = 0, phase = now % PERIOD_NS;

    for (int i = 0; i < MOST_VNPUS; i++)
        if (recent(shared->vnpus[i].alive_ns, now, GONE_NS))
            total += shared->vnpus[i].quota;
    for (int i = 0; i < MOST_VNPUS; i++) {
        if (!recent(shared->vnpus[i].alive_ns, now, GONE_NS))
            continue;
        end += shared->vnpus[i].quota * PERIOD_NS / (total > WHOLE ? total : WHOLE);
        if (phase < end)
            return i;
    }
    return NOBODY;
}

static int may_run(uint64_t now)
{
    int whose = owner(now), me = mine->config.virtual_npu_id;

    if (whose == me)
        return 1;
    if (mine->config.scheduling_policy != POLICY_ELASTIC)
        return 0;
    return whose == NOBODY || (utilization < BUSY && !recent(shared->vnpus[whose].work_ns, now, PERIOD_NS));
}

/* Waits for what is queued, so that it doesn't run in others' slices; returns how long that took. */
static uint64_t drain(void)
{
    uint64_t start = now_ns();
    rtError_t (*synchronize)(void) = (rtError_t(*)(void))runtime_function("rtDeviceSynchronize");

    synchronize();
    return now_ns() - start;
}

void schedule_enter(void)
{
    static uint64_t debt, last_wait;
    uint64_t now;

    if (mine->config.scheduling_policy == POLICY_BEST_EFFORT)
        return;
    pthread_mutex_lock(&turn);
    for (now = now_ns(); !may_run(now) || debt > 0; now = now_ns()) {
        if (!may_run(now) && now - last_wait > PERIOD_NS)
            debt += drain();
        if (may_run(now))
            debt -= debt < NS_PER_MS ? debt : NS_PER_MS;
        last_wait = now;
        sleep_ns(NS_PER_MS);
    }
    pthread_mutex_unlock(&turn);
    shared->vnpus[mine->config.virtual_npu_id].work_ns = now;
}
