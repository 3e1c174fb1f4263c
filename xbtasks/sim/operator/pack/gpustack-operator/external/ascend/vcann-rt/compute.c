/* Every call that puts work on the device, or waits for it: compute_hooks.S has one entry for each. */
#include <stdatomic.h>

#include "runtime.h"

#define COMPUTE_HOOK(name) #name,
static const char *const names[] = {
#include "compute_hooks.def"
};
#undef COMPUTE_HOOK

/* Called by each entry, with its place in the table, before the call goes on. Returns where it goes on to. */
__attribute__((visibility("hidden"))) void *compute_enter(unsigned int index)
{
    static void *_Atomic places[sizeof names / sizeof *names];

    return runtime_once(&places[index], names[index]);
}
