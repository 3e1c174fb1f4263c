/* Asks the toolkit for the chip's name: ACL where the library is linked with it, else the runtime, opened here. */
#include "soc.h"

#include <string.h>

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

    if (runtime != NULL)
        *(void **)&get_version = dlsym(runtime, "rtGetSocVersion");
    return get_version != NULL && get_version(name, sizeof name) == 0 ? name : NULL;
}
#endif

enum soc soc_generation(void)
{
    static const struct {
        const char *part;
        enum soc soc;
    } known[] = {{"950", SOC_950}, {"910", SOC_910}, {"310", SOC_310}};
    const char *name = soc_name();

    for (size_t i = 0; name != NULL && i < sizeof known / sizeof *known; i++)
        if (strstr(name, known[i].part) != NULL)
            return known[i].soc;
    return SOC_UNKNOWN;
}
