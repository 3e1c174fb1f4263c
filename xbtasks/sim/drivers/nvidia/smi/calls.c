#include "calls.h"

#include <dlfcn.h>
#include <stddef.h>

#include "oldest.h"

int calls_open(struct calls *calls)
{
    void *library = dlopen("libnvidia-ml.so.1", RTLD_LAZY);

    if (library == NULL)
        return 0;
#define CALL(name) calls->name = (__typeof__(&name))dlsym(library, #name);
#include "calls.def"
#undef CALL
    return calls->nvmlInitWithFlags != NULL && calls->nvmlErrorString != NULL;
}
