/* The CANN runtime behind the hooks: its types, as far as they are handed on, and its own functions. */
#ifndef VRUNTIME_RUNTIME_H
#define VRUNTIME_RUNTIME_H

#include <stddef.h>
#include <stdint.h>

#define RUNTIME_HOOK __attribute__((visibility("default")))

typedef int32_t rtError_t;
enum { RUNTIME_OK = 0, RUNTIME_INVALID_VALUE = 107000, RUNTIME_NOT_SUPPORTED = 207000 };

/* A hook that other hooks need to know the signature of. */
RUNTIME_HOOK rtError_t rtMemGetInfoEx(int kind, size_t *available, size_t *total);

/* The runtime's function of that name, or one that returns RUNTIME_NOT_SUPPORTED. */
void *runtime_function(const char *name);

/* The same, looked up once for each place that calls it. */
void *runtime_once(void *_Atomic *place, const char *name);

#define RUNTIME(name)                       \
    ((__typeof__(&name))({                  \
        static void *_Atomic place_;        \
        runtime_once(&place_, #name);       \
    }))

#endif
