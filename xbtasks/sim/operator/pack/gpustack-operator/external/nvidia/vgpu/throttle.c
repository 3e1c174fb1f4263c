/* A launch costs as many tokens as its grid has blocks. Every 120 ms a thread hands out new ones: more than the last
 * time where the device was less busy with this container than allowed, fewer where it was busier. A launch waits,
 * 10 ms at a time, while the balance is negative: it may overdraw, once. */
#define _POSIX_C_SOURCE 200809L
#include "throttle.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "allocations.h"
#include "driver.h"
#include "limits.h"
#include "log.h"
#include "real.h"
#include "region.h"
#include "utilization.h"

enum { PERIOD_MS = 120, WAIT_MS = 10, NONE = 100, FIRST_GRANT = 1000 };

static struct {
    uint64_t limit;
    _Atomic int64_t balance;
    int64_t grant; /* handed out each period */
    atomic_int wanted;
} devices[VGPU_DEVICES];
static int device_count;
static atomic_int active;

static void pause_ms(long milliseconds)
{
    struct timespec time = {0, milliseconds * 1000000};

    nanosleep(&time, NULL);
}

/* GPU_CORE_UTILIZATION_POLICY=DISABLE switches it off. */
static int disabled(void)
{
    const char *policy = getenv("GPU_CORE_UTILIZATION_POLICY");

    return policy != NULL && (strcmp(policy, "DISABLE") == 0 || strcmp(policy, "disable") == 0);
}

static int limited(int device)
{
    return devices[device].limit > 0 && devices[device].limit < NONE;
}

/* A period's grant follows from how busy the device was: in proportion, and in steps that are small near the limit.
 * What nobody asked for is no reason to hand out more. */
static void adjust(int device, unsigned int busy)
{
    int64_t limit = (int64_t)devices[device].limit, grant = devices[device].grant;
    int wanted = atomic_exchange(&devices[device].wanted, 0);

    if (busy > limit)
        grant -= grant * ((int64_t)busy - limit) / (2 * (int64_t)busy) + 1;
    else if (wanted)
        grant += grant * (limit - (int64_t)busy) / limit + 1;
    if (grant < 1)
        grant = 1;
    devices[device].grant = grant;
}

static void hand_out(int device)
{
    int64_t balance = atomic_load(&devices[device].balance), fresh;

    do {
        fresh = balance + devices[device].grant;
        if (fresh > devices[device].grant)
            fresh = devices[device].grant; /* what isn't used isn't saved up */
    } while (!atomic_compare_exchange_weak(&devices[device].balance, &balance, fresh));
}

static void *watch(void *nothing)
{
    (void)nothing;
    for (;;) {
        pause_ms(PERIOD_MS);
        for (int i = 0; i < device_count; i++) {
            unsigned int busy;

            if (!limited(i))
                continue;
            if (vgpu_utilization(i, &busy))
                adjust(i, busy);
            hand_out(i);
        }
    }
    return NULL;
}

void vgpu_throttle_start(int host_pid_known)
{
    unsigned int count = 0;
    pthread_t thread;
    int any = 0;

    NVML(nvmlDeviceGetCount_v2)(&count);
    device_count = count < VGPU_DEVICES ? (int)count : VGPU_DEVICES;
    for (int i = 0; i < device_count; i++) {
        devices[i].limit = vgpu_compute_limit(i);
        devices[i].grant = FIRST_GRANT;
        LOG_INFO("device %d: core utilization limit = %d", i, (int)devices[i].limit);
        any |= limited(i);
    }
    if (!any || !host_pid_known || disabled())
        return;
    if (pthread_create(&thread, NULL, watch, NULL) != 0) {
        LOG_ERROR("the utilization watcher could not be started: launches are not held back");
        return;
    }
    pthread_detach(thread);
    atomic_store(&active, 1);
}

void vgpu_throttle_stop(void)
{
    atomic_store(&active, 0);
}

void vgpu_throttle(uint64_t blocks)
{
    int device = atomic_load(&active) ? vgpu_current_device() : -1;

    if (device < 0 || device >= device_count || !limited(device))
        return;
    atomic_store(&devices[device].wanted, 1);
    while (atomic_load(&devices[device].balance) < 0) {
        pause_ms(WAIT_MS);
        atomic_store(&devices[device].wanted, 1);
    }
    atomic_fetch_sub(&devices[device].balance, (int64_t)blocks);
}
