/* cuInit: which devices this process has, in which order; and what errors are called. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "state.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct sim_driver driver;
static struct device devices[SIM_CARDS];
static int count, initialised;
static pid_t owner;

void cuda_lock(void)
{
    pthread_mutex_lock(&lock);
}

void cuda_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

/* The driver can't be used in a child of a process that had initialised it. */
CUresult cuda_ready(void)
{
    return initialised && owner == getpid() ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}

struct sim_driver *cuda_driver(void)
{
    return &driver;
}

struct device *cuda_device(CUdevice device)
{
    return device >= 0 && device < count ? &devices[device] : NULL;
}

CUresult cuda_result(enum node_status status)
{
    switch (status) {
    case NODE_OK:
        return CUDA_SUCCESS;
    case NODE_NO_MEMORY:
        return CUDA_ERROR_OUT_OF_MEMORY;
    case NODE_UNSUPPORTED:
        return CUDA_ERROR_NOT_SUPPORTED;
    case NODE_INVALID:
        return CUDA_ERROR_INVALID_VALUE;
    case NODE_NO_CARD:
    case NODE_LOST:
        return CUDA_ERROR_DEVICE_UNAVAILABLE;
    case NODE_ABSENT:
        break;
    }
    return CUDA_ERROR_UNKNOWN;
}

uint64_t cuda_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void cuda_sleep_until(uint64_t end)
{
    struct timespec until = {.tv_sec = (time_t)(end / 1000000000u), .tv_nsec = (long)(end % 1000000000u)};

    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) != 0)
        continue;
}

static int speed(const struct sim_card *card)
{
    return card->multiprocessors * card->clock_mhz;
}

/* The order of ordinals: the fastest card first (the default), or that of the PCI addresses. */
static int order(struct sim_card *sorted)
{
    const char *wanted = getenv("CUDA_DEVICE_ORDER");
    int by_bus = wanted != NULL && strcmp(wanted, "PCI_BUS_ID") == 0, found = 0;

    for (int i = 0; i < driver.count; i++) {
        struct sim_card *card = &driver.cards[i];
        int place = found;

        if (card->mig == MIG_ON || card->lost)
            continue; /* a card in MIG mode has only its instances, and the simulated ones have none */
        while (!by_bus && place > 0 && speed(&sorted[place - 1]) < speed(card)) {
            sorted[place] = sorted[place - 1];
            place--;
        }
        sorted[place] = *card;
        found++;
    }
    return found;
}

/* The card that an item of CUDA_VISIBLE_DEVICES names: an ordinal, or the beginning of a UUID; -1 if none. */
static int named(const char *item, size_t length, const struct sim_card *sorted, int found)
{
    int hit = -1, ordinal = 0;

    if (strncmp(item, "GPU-", 4) == 0) {
        for (int i = 0; i < found; i++) {
            if (strncmp(sorted[i].uuid, item, length) != 0)
                continue;
            if (hit >= 0)
                return -1;
            hit = i;
        }
        return hit;
    }
    for (size_t i = 0; i < length; i++) {
        if (item[i] < '0' || item[i] > '9' || ordinal > SIM_CARDS)
            return -1;
        ordinal = ordinal * 10 + (item[i] - '0');
    }
    return length > 0 && ordinal < found ? ordinal : -1;
}

/* Devices are those that CUDA_VISIBLE_DEVICES names, in its order, up to the first item that names none. */
static void choose(const struct sim_card *sorted, int found)
{
    const char *list = getenv("CUDA_VISIBLE_DEVICES");
    int taken[SIM_CARDS] = {0};

    count = 0;
    if (list == NULL) {
        for (; count < found; count++)
            devices[count].card = sorted[count];
        return;
    }
    while (count < found) {
        size_t length = strcspn(list, ",");
        int card = named(list, length, sorted, found);

        if (card < 0 || taken[card]) {
            if (card >= 0)
                count = 0; /* a card that is named twice: no device at all */
            return;
        }
        taken[card] = 1;
        devices[count++].card = sorted[card];
        if (list[length] == '\0')
            return;
        list += length + 1;
    }
}

static CUresult initialise(void)
{
    struct sim_card sorted[SIM_CARDS];

    sim_look(&driver);
    if (driver.fault == FAULT_MISMATCH)
        return CUDA_ERROR_SYSTEM_DRIVER_MISMATCH;
    if (driver.fault == FAULT_UNKNOWN)
        return CUDA_ERROR_UNKNOWN;
    if (driver.fault == FAULT_NOT_LOADED)
        return CUDA_ERROR_NO_DEVICE;
    choose(sorted, order(sorted));
    for (int i = 0; i < count; i++) {
        devices[i].primary.device = i;
        devices[i].primary.primary = 1;
    }
    return count == 0 ? CUDA_ERROR_NO_DEVICE : CUDA_SUCCESS;
}

CUDA_API CUresult cuInit(unsigned int flags)
{
    CUresult result = CUDA_SUCCESS;

    if (flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    cuda_lock();
    if (!initialised) {
        result = initialise();
        initialised = result == CUDA_SUCCESS;
        owner = getpid();
    }
    cuda_unlock();
    return result == CUDA_SUCCESS ? cuda_ready() : result;
}

/* Private tables of functions aren't part of the API, and there are none here. */
CUDA_API CUresult cuGetExportTable(const void **table, const CUuuid *id)
{
    if (table == NULL || id == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *table = NULL;
    return CUDA_ERROR_NOT_FOUND;
}

CUDA_API CUresult cuDriverGetVersion(int *version)
{
    if (version == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    cuda_lock();
    if (driver.cuda == 0)
        sim_look(&driver);
    cuda_unlock();
    *version = driver.cuda;
    return CUDA_SUCCESS;
}

static const struct {
    CUresult error;
    const char *name, *text;
} errors[] = {
    {CUDA_SUCCESS, "CUDA_SUCCESS", "no error"},
    {CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {CUDA_ERROR_NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {CUDA_ERROR_DEVICE_UNAVAILABLE, "CUDA_ERROR_DEVICE_UNAVAILABLE",
     "CUDA-capable device(s) is/are busy or unavailable"},
    {CUDA_ERROR_NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {CUDA_ERROR_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {CUDA_ERROR_INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {CUDA_ERROR_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {CUDA_ERROR_INVALID_PTX, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"},
    {CUDA_ERROR_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {CUDA_ERROR_NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {CUDA_ERROR_NOT_READY, "CUDA_ERROR_NOT_READY", "device not ready"},
    {CUDA_ERROR_NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
     "system has unsupported display driver / cuda driver combination"},
    {CUDA_ERROR_UNKNOWN, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

static CUresult describe(CUresult error, const char **text, int by_name)
{
    if (text == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *text = NULL;
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].error == error)
            *text = by_name ? errors[i].name : errors[i].text;
    return *text == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUDA_API CUresult cuGetErrorName(CUresult error, const char **text)
{
    return describe(error, text, 1);
}

CUDA_API CUresult cuGetErrorString(CUresult error, const char **text)
{
    return describe(error, text, 0);
}
