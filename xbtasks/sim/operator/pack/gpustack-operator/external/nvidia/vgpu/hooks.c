/* The table of hooks, by name, and the dlsym that hands them out. */
#include "hooks.h"

#include <stdio.h>
#include <string.h>

#include "driver.h"
#include "real.h"

#define HOOK(name) {#name, (void *)name},
static const struct {
    const char *name;
    void *function;
} hooks[] = {
#include "hooks.def"
};
#undef HOOK

void *vgpu_hook(const char *name)
{
    for (size_t i = 0; i < sizeof hooks / sizeof *hooks; i++)
        if (strcmp(hooks[i].name, name) == 0)
            return hooks[i].function;
    return NULL;
}

void *vgpu_hook_of_base(const char *base)
{
    static const char *const suffixes[] = {"_v3", "_v2", ""};
    char name[128];

    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        int length = snprintf(name, sizeof name, "%s%s", base, suffixes[i]);
        void *hook = length < (int)sizeof name ? vgpu_hook(name) : NULL;

        if (hook != NULL)
            return hook;
    }
    return NULL;
}

/* Programs find the driver's functions with dlsym: nvidia-smi all of NVML, the CUDA runtime all of libcuda. */
VGPU_HOOK void *dlsym(void *restrict handle, const char *restrict name)
{
    if (strncmp(name, "cu", 2) == 0 || strncmp(name, "nvml", 4) == 0) {
        void *hook = vgpu_hook(name);

        if (hook != NULL)
            return hook;
    }
    return vgpu_libc_dlsym(handle, name);
}
