/* Asks the toolkit for the chip's name: ACL where the library is linked with it, else the runtime, opened here. */
#include "soc.h"

#include <stddef.h>
#include <string.h>

#include "log.h"

#ifdef ACL_LINKED
const char *aclrtGetSocName(void);

static const char *soc_name(void)
{
    return aclrtGetSocName();
}
#else
#include <dlfcn.h>

static const char *soc_name(void)
{
    static char name[64];
    void *runtime = dlopen("libruntime.so", RTLD_LAZY);
    int (*get_version)(char *, unsigned int) = NULL;

    if (runtime == NULL)
        LOG_ERROR("Failed to dlopen libruntime.so: %s", dlerror());
    else
        *(void **)&get_version = dlsym(runtime, "rtGetSocVersion");
    return get_version != NULL && get_version(name, sizeof name) == 0 ? name : NULL;
}
#endif

int soc_find(enum soc *soc)
{
    const char *name = soc_name();

    if (name == NULL) {
        LOG_ERROR("Failed to get the chip's name.");
        return 1;
    }
    LOG_INFO("Get socVersion: %s.", name);
    *soc = strstr(name, "Ascend950") != NULL   ? SOC_950
           : strstr(name, "Ascend310") != NULL ? SOC_310
                                               : SOC_910;
    return 0;
}
