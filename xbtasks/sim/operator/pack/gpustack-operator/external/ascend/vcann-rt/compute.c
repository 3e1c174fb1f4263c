/* Every call that puts work on the device, or orders it: compute_hooks.S has one entry for each. */
#include <stdatomic.h>

#include "runtime.h"
#include "schedule.h"
#include "slice.h"

#define COMPUTE_HOOK(name) #name,
static const char *const names[] = {
#include "work_hooks.def"
#include "order_hooks.def"
};
static const char *const work[] = {
#include "work_hooks.def"
};
#undef COMPUTE_HOOK

enum { WORK_HOOKS = sizeof work / sizeof *work };

/* Called by each entry, with its place in the table, before the call goes on. Returns where it goes on to. */
__attribute__((visibility("hidden"))) void *compute_enter(unsigned int index)
{
    static void *_Atomic places[sizeof names / sizeof *names];

    if (index < WORK_HOOKS && slice_started())
        schedule_enter();
    return runtime_once(&places[index], names[index]);
}
