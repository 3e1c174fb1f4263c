#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>

#include "probe.h"

/* The CUDA versions whose interface is asked for: the first that has the call. */
enum { CUDA_12_0 = 12000, CUDA_11_3 = 11030 };

void *driver, *nvml, *found;

static int looked_up;

/* lookup: from here on the driver's functions are those that cuGetProcAddress gives out, as for the CUDA runtime. */
void op_lookup(void)
{
    looked_up = 1;
    put("\"rc\":0");
}

/* cuGetProcAddress knows functions without their version. */
static void *by_base(const char *name)
{
    char base[64];
    size_t length = strcspn(name, "_");

    if (length >= sizeof base)
        return NULL;
    memcpy(base, name, length);
    base[length] = '\0';
    looked_up = 0;
    found = by_lookup(base);
    looked_up = 1;
    return found;
}

void *look(void *library, const char *name)
{
    if (looked_up && library == driver && by_base(name) != NULL)
        return found;
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
