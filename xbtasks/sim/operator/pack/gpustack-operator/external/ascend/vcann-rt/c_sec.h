/* The bounded string functions of the toolkit's libc_sec.so (securec): non-zero, or -1, where it doesn't fit. */
#ifndef VRUNTIME_C_SEC_H
#define VRUNTIME_C_SEC_H

#include <stddef.h>

int memset_s(void *target, size_t capacity, int value, size_t count);
int strncpy_s(char *target, size_t capacity, const char *source, size_t count);
int snprintf_s(char *target, size_t capacity, size_t count, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif
