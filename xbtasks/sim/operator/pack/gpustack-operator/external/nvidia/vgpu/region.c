/* The cache file: a mapped table with a place for each process. Locks are the kernel's record locks, which go with
 * their holder, so a process that is killed blocks nobody. */
#define _POSIX_C_SOURCE 200809L
#include "region.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "alive.h"
#include "log.h"

enum { PLACES = 1024, MAGIC = 0x76677075, MAJOR = 1, MINOR = 0 };
enum { LOCK_TABLE = 0, LOCK_QUIET = 1 };

struct place {
    int32_t pid, host_pid; /* pid 0: free */
    uint64_t used[VGPU_DEVICES];
};

struct region {
    uint32_t magic, major, minor, reserved;
    struct vgpu_limits limits;
    struct place places[PLACES];
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t started = PTHREAD_ONCE_INIT;
static struct region *region;
static struct place *own;
static int file = -1;

static void record_lock(int byte, short type)
{
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};

    while (fcntl(file, F_SETLKW, &lock) != 0 && errno == EINTR)
        continue;
}

static void table_lock(void)
{
    pthread_mutex_lock(&mutex);
    record_lock(LOCK_TABLE, F_WRLCK);
}

static void table_unlock(void)
{
    record_lock(LOCK_TABLE, F_UNLCK);
    pthread_mutex_unlock(&mutex);
}

void vgpu_quiet_begin(void)
{
    record_lock(LOCK_QUIET, F_WRLCK);
}

void vgpu_quiet_end(void)
{
    record_lock(LOCK_QUIET, F_UNLCK);
}

static void leave(void)
{
    int pid = (int)getpid();

    LOG_NOTICE("Cleanup on exit for PID %d", pid);
    if (own != NULL && own->pid == pid)
        memset(own, 0, sizeof *own);
    LOG_NOTICE("Exit cleanup complete for PID %d", pid);
}

/* Frees the places of processes that ended without leaving. The lock is held. */
static int free_dead(void)
{
    int freed = 0;

    for (struct place *place = region->places; place < region->places + PLACES; place++) {
        if (place->pid == 0 || vgpu_alive(place->pid))
            continue;
        LOG_WARN("Kick dead proc %d", (int)place->pid);
        memset(place, 0, sizeof *place);
        freed = 1;
    }
    return freed;
}

/* Takes a place; one with this process's number is a left-over of another that had it. */
static void take_place(void)
{
    int32_t pid = (int32_t)getpid();

    table_lock();
    free_dead();
    own = NULL;
    for (struct place *place = region->places; place < region->places + PLACES; place++)
        if (place->pid == pid || (own == NULL && place->pid == 0))
            own = place;
    if (own == NULL) {
        LOG_ERROR("no place left in the cache: %d processes share it", PLACES);
        exit(EXIT_FAILURE);
    }
    memset(own, 0, sizeof *own);
    own->pid = pid;
    table_unlock();
}

/* A forked child is a process of its own. Its parent's locks aren't its own, and it has no place yet. */
static void become_child(void)
{
    pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;

    mutex = fresh;
    if (region != NULL)
        take_place();
}

static void compare(const struct vgpu_limits *asked)
{
    for (int i = 0; i < VGPU_DEVICES; i++) {
        if (asked->memory[i] != region->limits.memory[i])
            LOG_ERROR("Limit inconsistency detected for %dth device, %lu expected, get %lu", i,
                      (unsigned long)asked->memory[i], (unsigned long)region->limits.memory[i]);
        if (asked->compute[i] != region->limits.compute[i])
            LOG_INFO("SM limit inconsistency detected for %dth device, %lu expected, get %lu", i,
                     (unsigned long)asked->compute[i], (unsigned long)region->limits.compute[i]);
    }
}

static void settle_limits(void)
{
    struct vgpu_limits asked;

    vgpu_read_limits(&asked);
    table_lock();
    if (region->magic != MAGIC) {
        memset(region, 0, sizeof *region);
        region->major = MAJOR;
        region->minor = MINOR;
        region->limits = asked;
        region->magic = MAGIC;
    } else {
        if (region->major != MAJOR || region->minor != MINOR)
            LOG_ERROR("The current version number %d.%d is different from the file's version number %u.%u", MAJOR,
                      MINOR, region->major, region->minor);
        compare(&asked);
    }
    table_unlock();
}

static void start(void)
{
    const char *path = getenv("CUDA_DEVICE_MEMORY_SHARED_CACHE");

    if (path == NULL)
        path = "/tmp/cudevshr.cache";
    file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (file < 0) {
        LOG_ERROR("Fail to open shrreg %s: errno=%d", path, errno);
        exit(EXIT_FAILURE);
    }
    fchmod(file, 0666); /* whoever else shares it may be another user; not allowed means that it is another's already */
    if (ftruncate(file, sizeof *region) == 0)
        region = mmap(NULL, sizeof *region, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (region == NULL || region == MAP_FAILED) {
        LOG_ERROR("Fail to map shrreg %s: errno=%d", path, errno);
        exit(EXIT_FAILURE);
    }
    settle_limits();
    take_place();
    atexit(leave);
    pthread_atfork(NULL, NULL, become_child);
}

void vgpu_region_start(void)
{
    pthread_once(&started, start);
}

static int known(int device)
{
    return device >= 0 && device < VGPU_DEVICES;
}

uint64_t vgpu_memory_limit(int device)
{
    return known(device) ? region->limits.memory[device] : 0;
}

uint64_t vgpu_compute_limit(int device)
{
    return known(device) ? region->limits.compute[device] : 100;
}

static uint64_t sum(int device)
{
    uint64_t total = 0;

    for (const struct place *place = region->places; known(device) && place < region->places + PLACES; place++)
        total += place->used[device];
    return total;
}

uint64_t vgpu_used(int device)
{
    uint64_t total;

    table_lock();
    total = sum(device);
    table_unlock();
    return total;
}

int vgpu_book(int device, uint64_t size)
{
    uint64_t limit = vgpu_memory_limit(device), wanted;
    int fits;

    if (!known(device))
        return 1;
    table_lock();
    wanted = sum(device) + size;
    if (limit != 0 && wanted > limit) {
        LOG_ERROR("Device %d OOM %lu / %lu", device, (unsigned long)wanted, (unsigned long)limit);
        if (free_dead())
            wanted = sum(device) + size;
    }
    fits = limit == 0 || wanted <= limit;
    if (fits)
        own->used[device] += size;
    table_unlock();
    return fits;
}

void vgpu_book_context(int device, uint64_t size)
{
    if (!known(device))
        return;
    table_lock();
    own->used[device] += size;
    table_unlock();
}

void vgpu_unbook(int device, uint64_t size)
{
    if (!known(device))
        return;
    table_lock();
    own->used[device] -= size < own->used[device] ? size : own->used[device];
    table_unlock();
}

void vgpu_set_host_pid(int pid)
{
    own->host_pid = pid;
}

int vgpu_is_ours(int host_pid)
{
    int found = 0;

    table_lock();
    for (const struct place *place = region->places; place < region->places + PLACES; place++)
        found |= place->pid != 0 && place->host_pid == host_pid;
    table_unlock();
    return found;
}
