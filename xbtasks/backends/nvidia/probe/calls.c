#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>

#include "probe.h"

/* The CUDA versions whose interface is asked for, each with a call of its own. */
enum { CUDA_12_0 = 12000, CUDA_11_3 = 11030 };

typedef int lookup_12(const char *, void **, int, uint64_t, int *);

void *driver, *nvml, *found;

static int looked_up;

/* lookup: from here on the driver's functions are those that cuGetProcAddress gives out, as for the CUDA runtime, and no
 * others: what it doesn't give out isn't there. */
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
    if (looked_up && library == driver)
        return by_base(name);
    found = library == NULL ? NULL : dlsym(library, name);
    return found;
}

void *by_lookup(const char *name)
{
    void *function = NULL;
    int status = 0, result;

    result = CUDA(cuGetProcAddress_v2, (const char *, void **, int, uint64_t, int *), name, &function, CUDA_12_0, 0, &status);
    return result == ABSENT ? by_old_lookup(name) : result == 0 ? function : NULL;
}

void *by_old_lookup(const char *name)
{
    void *function = NULL;

    return CUDA(cuGetProcAddress, (const char *, void **, int, uint64_t), name, &function, CUDA_11_3, 0) == 0 ? function : NULL;
}

void *by_second_lookup(const char *name)
{
    lookup_12 *lookup = by_lookup("cuGetProcAddress");
    void *function = NULL;
    int status = 0;

    return lookup != NULL && lookup(name, &function, CUDA_12_0, 0, &status) == 0 ? function : NULL;
}
