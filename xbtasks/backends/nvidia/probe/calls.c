#define _GNU_SOURCE
#include <dlfcn.h>

#include "probe.h"

/* The CUDA versions whose interface is asked for: the first that has the call. */
enum { CUDA_12_0 = 12000, CUDA_11_3 = 11030 };

void *driver, *nvml, *found;

void *look(void *library, const char *name)
{
    found = library == NULL ? NULL : dlsym(library, name);
    return found;
}

void *by_lookup(const char *name)
{
    void *function = NULL;
    int status = 0;

    if (CUDA(cuGetProcAddress_v2, (const char *, void **, int, uint64_t, int *), name, &function, CUDA_12_0, 0, &status) == 0)
        return function;
    if (CUDA(cuGetProcAddress, (const char *, void **, int, uint64_t), name, &function, CUDA_11_3, 0) == 0)
        return function;
    return NULL;
}
