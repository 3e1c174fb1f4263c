/* Does with the CUDA driver what its arguments say, one after the other, and says how each went: "word value result...".
 * Everything is had by dlopen and dlsym, as the CUDA runtime has it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)
#define CUDA(name, ...) ((int (*)(__VA_ARGS__))dlsym(library, #name))

static void *library;
static int device;

static const char spin[] =
    ".version 6.0\n.target sm_50\n.address_size 64\n"
    ".visible .entry spin(.param .u64 cycles)\n{\n"
    "    .reg .pred %more;\n    .reg .b64 %limit, %start, %time;\n"
    "    ld.param.u64 %limit, [cycles];\n    mov.u64 %start, %clock64;\n"
    "again:\n    mov.u64 %time, %clock64;\n    sub.s64 %time, %time, %start;\n"
    "    setp.lt.u64 %more, %time, %limit;\n    @%more bra again;\n    ret;\n}\n";

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static int start(void)
{
    void *context = NULL;
    int result = CUDA(cuInit, unsigned int)(0);

    if (result == 0)
        result = CUDA(cuDevicePrimaryCtxRetain, void **, int)(&context, device);
    return result == 0 ? CUDA(cuCtxSetCurrent, void *)(context) : result;
}

static void info(void)
{
    size_t available = 0, total = 0, whole = 0;
    int result = CUDA(cuMemGetInfo_v2, size_t *, size_t *)(&available, &total);

    CUDA(cuDeviceTotalMem_v2, size_t *, int)(&whole, device);
    printf("%d %zu %zu %zu", result, available / MIB, total / MIB, whole / MIB);
}

static void found(const char *name, int version)
{
    size_t available = 0, total = 0;
    void *function = NULL;
    int status = -1;
    int result = CUDA(cuGetProcAddress_v2, const char *, void **, int, uint64_t, int *)(name, &function, version, 0, &status);

    printf("%d %d", result, status);
    if (function != NULL && strcmp(name, "cuMemGetInfo") == 0) {
        result = ((int (*)(size_t *, size_t *))function)(&available, &total);
        printf(" %d %zu", result, total / MIB);
    }
}

/* Takes so many MiB in one of the ways; gives them back if "keep" isn't asked for. */
static void take(const char *how, size_t size, int keep)
{
    struct {
        int type, handles, place, id;
        void *nothing;
        unsigned char flags[8];
    } wanted = {1, 0, 1, device, NULL, {0}};
    uint64_t at = 0;
    size_t pitch;
    void *host;
    int result = -9, back = -9;

    if (strcmp(how, "alloc") == 0)
        result = CUDA(cuMemAlloc_v2, uint64_t *, size_t)(&at, size);
    else if (strcmp(how, "managed") == 0)
        result = CUDA(cuMemAllocManaged, uint64_t *, size_t, unsigned int)(&at, size, 1);
    else if (strcmp(how, "pitch") == 0)
        result = CUDA(cuMemAllocPitch_v2, uint64_t *, size_t *, size_t, size_t, unsigned int)(&at, &pitch, MIB, size / MIB, 4);
    else if (strcmp(how, "async") == 0)
        result = CUDA(cuMemAllocAsync, uint64_t *, size_t, void *)(&at, size, NULL);
    else if (strcmp(how, "create") == 0)
        result = CUDA(cuMemCreate, uint64_t *, size_t, void *, unsigned long long)(&at, size, &wanted, 0);
    else if (strcmp(how, "host") == 0)
        result = CUDA(cuMemHostAlloc, void **, size_t, unsigned int)(&host, size, 0);
    printf("%d", result);
    if (result != 0 || keep)
        return;
    if (strcmp(how, "async") == 0)
        back = CUDA(cuMemFreeAsync, uint64_t, void *)(at, NULL);
    else if (strcmp(how, "create") == 0)
        back = CUDA(cuMemRelease, uint64_t)(at);
    else if (strcmp(how, "host") == 0)
        back = CUDA(cuMemFreeHost, void *)(host);
    else
        back = CUDA(cuMemFree_v2, uint64_t)(at);
    printf(" %d", back);
}

/* What is written to the device can be read again; what lies outside of it can't be written. */
static void copies(void)
{
    char written[8] = "written", got[8] = "";
    uint64_t at = 0;
    int result = CUDA(cuMemAlloc_v2, uint64_t *, size_t)(&at, MIB);

    result |= CUDA(cuMemcpyHtoD_v2, uint64_t, const void *, size_t)(at + 100, written, sizeof written);
    result |= CUDA(cuMemcpyDtoH_v2, void *, uint64_t, size_t)(got, at + 100, sizeof got);
    printf("%d %s %d", result, got, CUDA(cuMemcpyHtoD_v2, uint64_t, const void *, size_t)(at + MIB - 4, written, sizeof written));
}

/* rate=BLOCKS:CYCLES:SECONDS: launches a second, each waited for; the first two seconds are dropped. */
static void rate(const char *values)
{
    unsigned int blocks = 0;
    uint64_t cycles = 0;
    double seconds = 0, begun;
    void *module = NULL, *function = NULL, *parameters[] = {&cycles};
    long launches = 0;
    int result;

    sscanf(values, "%u:%lu:%lf", &blocks, &cycles, &seconds);
    result = CUDA(cuModuleLoadData, void **, const void *)(&module, spin);
    if (result == 0)
        result = CUDA(cuModuleGetFunction, void **, void *, const char *)(&function, module, "spin");
    for (int measured = 0; measured < 2 && result == 0; measured++)
        for (begun = now(), launches = 0; result == 0 && now() - begun < (measured ? seconds : 2); launches++) {
            result = CUDA(cuLaunchKernel, void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *,
                          void **, void **)(function, blocks, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL);
            if (result == 0)
                result = CUDA(cuCtxSynchronize, void)();
        }
    printf("%d %.0f", result, (double)launches / seconds);
}

static void perform(const char *word)
{
    const char *value = strchr(word, '=');
    size_t length = value == NULL ? strlen(word) : (size_t)(value - word);
    char name[32] = "";

    memcpy(name, word, length < sizeof name ? length : sizeof name - 1);
    value = value == NULL ? "" : value + 1;
    if (strcmp(name, "fork") != 0)
        printf("%s ", word);
    if (strcmp(name, "device") == 0)
        device = atoi(value);
    else if (strcmp(name, "start") == 0)
        printf("%d", start());
    else if (strcmp(name, "info") == 0)
        info();
    else if (strcmp(name, "find") == 0)
        found(value, 12000);
    else if (strcmp(name, "keep") == 0)
        take("alloc", strtoul(value, NULL, 10) * MIB, 1);
    else if (strcmp(name, "copies") == 0)
        copies();
    else if (strcmp(name, "rate") == 0)
        rate(value);
    else if (strcmp(name, "pause") == 0)
        usleep((useconds_t)(atof(value) * 1e6));
    else if (strcmp(name, "kill") == 0)
        kill(getpid(), SIGKILL);
    else if (strcmp(name, "wait") == 0)
        while (access(value, F_OK) != 0)
            usleep(10000);
    else if (strcmp(name, "touch") == 0)
        fclose(fopen(value, "w"));
    else if (strcmp(name, "fork") == 0)
        printf("%s", fork() == 0 ? "child" : "parent");
    else
        take(name, strtoul(value, NULL, 10) * MIB, 0);
    printf("\n");
    fflush(stdout);
}

int main(int count, char **words)
{
    library = dlopen("libcuda.so.1", RTLD_NOW);
    if (library == NULL) {
        printf("%s\n", dlerror());
        return 1;
    }
    for (int i = 1; i < count; i++)
        perform(words[i]);
    while (wait(NULL) > 0)
        continue;
    return 0;
}
