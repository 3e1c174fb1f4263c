/* The text of a kernel, cut into its statements. */
#ifndef SIM_CUDA_PTXTEXT_H
#define SIM_CUDA_PTXTEXT_H

#include <stddef.h>

/* A copy of the text without comments; NULL without memory. */
char *ptx_without_comments(const char *text);

/* The place after ".entry NAME", or NULL. */
const char *ptx_entry(const char *text, const char *name);

/* The length of a name at that place: letters, digits, and "_$%.". */
size_t ptx_name_length(const char *at);
const char *ptx_skip_blanks(const char *at);

/* The end of the block that opens at that place; NULL where it isn't closed. */
const char *ptx_block_end(const char *open);

#endif
