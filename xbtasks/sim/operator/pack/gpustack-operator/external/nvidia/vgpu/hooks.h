/* Which functions are hooked. */
#ifndef VGPU_HOOKS_H
#define VGPU_HOOKS_H

/* The hook of exactly that name, or NULL. */
void *vgpu_hook(const char *name);

/* The hook of a base name (cuMemAlloc stands for cuMemAlloc_v2): newest version first, or NULL. */
void *vgpu_hook_of_base(const char *base);

#endif
