/* A stand-in of the toolkit's libc_sec.so for the linker: the bounded string functions that are used. */
#include "c_sec.h"

#define EXPORTED __attribute__((visibility("default")))

EXPORTED int memset_s(void *target, size_t capacity, int value, size_t count)
{
    (void)target, (void)value;
    return count > capacity;
}

EXPORTED int strncpy_s(char *target, size_t capacity, const char *source, size_t count)
{
    (void)target, (void)source;
    return count >= capacity;
}

EXPORTED int snprintf_s(char *target, size_t capacity, size_t count, const char *format, ...)
{
    (void)target, (void)format;
    return count < capacity ? 0 : -1;
}
