#ifndef VGPU_CONTEXT_H
#define VGPU_CONTEXT_H

#include <stdint.h>

/* How much memory a primary context takes; nothing until it was found out. */
void vgpu_set_context_size(uint64_t size);

/* In a child, which has none of its parent's contexts. */
void vgpu_forget_contexts(void);

#endif
