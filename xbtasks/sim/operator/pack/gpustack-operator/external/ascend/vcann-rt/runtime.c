/* Finds the runtime's own functions: the next definition after this library's. */
#define _GNU_SOURCE
#include "runtime.h"

#include <dlfcn.h>
#include <stdatomic.h>

static rtError_t not_supported(void)
{
    return RUNTIME_NOT_SUPPORTED;
}

void *runtime_function(const char *name)
{
    void *function = dlsym(RTLD_NEXT, name);

    return function == NULL ? (void *)not_supported : function;
}

void *runtime_once(void *_Atomic *place, const char *name)
{
    void *function = atomic_load_explicit(place, memory_order_acquire);

    if (function == NULL) {
        function = runtime_function(name);
        atomic_store_explicit(place, function, memory_order_release);
    }
    return function;
}
