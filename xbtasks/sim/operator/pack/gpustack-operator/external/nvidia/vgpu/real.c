/* Finds the real functions: in the driver's own libraries, whatever stands before them in the search order. */
#define _GNU_SOURCE
#include "real.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>

#include "driver.h"

typedef void *dlsym_function(void *, const char *);

/* dlsym@GLIBC_2.34 is the current one; the others are the first versions of x86-64 and aarch64, kept by later
 * C libraries too. dlvsym isn't hooked, so it reaches the C library's. */
static const char *const dlsym_versions[] = {"GLIBC_2.34", "GLIBC_2.2.5", "GLIBC_2.17"};

void *vgpu_libc_dlsym(void *handle, const char *name)
{
    static void *_Atomic found;
    void *function = atomic_load(&found);

    for (size_t i = 0; function == NULL && i < sizeof dlsym_versions / sizeof *dlsym_versions; i++)
        function = dlvsym(RTLD_NEXT, "dlsym", dlsym_versions[i]);
    if (function == NULL)
        return NULL;
    atomic_store(&found, function);
    /* A tail call: with RTLD_NEXT, dlsym looks at its return address to tell who asks. */
    return ((dlsym_function *)function)(handle, name);
}

static CUresult cuda_not_found(void)
{
    return CUDA_ERROR_NOT_FOUND;
}

static nvmlReturn_t nvml_not_found(void)
{
    return NVML_ERROR_FUNCTION_NOT_FOUND;
}

static void *function_of(const char *library, const char *name)
{
    void *handle = dlopen(library, RTLD_LAZY | RTLD_LOCAL);

    return handle == NULL ? NULL : vgpu_libc_dlsym(handle, name);
}

void *vgpu_cuda_function(const char *name)
{
    void *function = function_of("libcuda.so.1", name);

    return function == NULL ? (void *)cuda_not_found : function;
}

void *vgpu_nvml_function(const char *name)
{
    void *function = function_of("libnvidia-ml.so.1", name);

    return function == NULL ? (void *)nvml_not_found : function;
}

void *vgpu_once(void *_Atomic *place, void *(*look_up)(const char *), const char *name)
{
    void *function = atomic_load_explicit(place, memory_order_acquire);

    if (function == NULL) {
        function = look_up(name);
        atomic_store_explicit(place, function, memory_order_release);
    }
    return function;
}
