/* libc_sec.so: the bounded string functions of the toolkit (securec). What doesn't fit is refused, and the target
 * is emptied. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define SEC_API __attribute__((visibility("default")))

enum { EOK = 0, SEC_EINVAL = 22, SEC_ERANGE = 34, EINVAL_AND_RESET = 150, ERANGE_AND_RESET = 162 };

/* No object is larger: a capacity above it is a negative number that was converted. */
#define MOST 0x7fffffffU

static int text_code(char *target, size_t capacity, const char *source)
{
    if (capacity == 0 || capacity > MOST)
        return SEC_ERANGE;
    if (target == NULL)
        return SEC_EINVAL;
    if (source == NULL) {
        *target = '\0';
        return EINVAL_AND_RESET;
    }
    return EOK;
}

static int append(char *target, size_t capacity, size_t at, const char *source, size_t count)
{
    size_t length = strnlen(source, count);

    if (length >= capacity - at) {
        *target = '\0';
        return ERANGE_AND_RESET;
    }
    memmove(target + at, source, length);
    target[at + length] = '\0';
    return EOK;
}

SEC_API int memset_s(void *target, size_t capacity, int value, size_t count)
{
    if (target == NULL)
        return SEC_EINVAL;
    if (capacity == 0 || capacity > MOST)
        return SEC_ERANGE;
    memset(target, value, count > capacity ? capacity : count);
    return count > capacity ? ERANGE_AND_RESET : EOK;
}

SEC_API int memcpy_s(void *target, size_t capacity, const void *source, size_t count)
{
    if (target == NULL)
        return SEC_EINVAL;
    if (capacity == 0 || capacity > MOST)
        return SEC_ERANGE;
    if (source == NULL || count > capacity) {
        memset(target, 0, capacity);
        return source == NULL ? EINVAL_AND_RESET : ERANGE_AND_RESET;
    }
    memmove(target, source, count);
    return EOK;
}

SEC_API int strncpy_s(char *target, size_t capacity, const char *source, size_t count)
{
    int code = text_code(target, capacity, source);

    return code == EOK ? append(target, capacity, 0, source, count) : code;
}

SEC_API int strcpy_s(char *target, size_t capacity, const char *source)
{
    return strncpy_s(target, capacity, source, MOST);
}

SEC_API int strncat_s(char *target, size_t capacity, const char *source, size_t count)
{
    int code = text_code(target, capacity, source);
    size_t at = code == EOK ? strnlen(target, capacity) : 0;

    if (code == EOK && at == capacity) {
        *target = '\0';
        code = EINVAL_AND_RESET;
    }
    return code == EOK ? append(target, capacity, at, source, count) : code;
}

SEC_API int strcat_s(char *target, size_t capacity, const char *source)
{
    return strncat_s(target, capacity, source, MOST);
}

/* Of what is longer than `count` the beginning is kept, where it fits. */
SEC_API int vsnprintf_s(char *target, size_t capacity, size_t count, const char *format, va_list values)
{
    int length;

    if (text_code(target, capacity, format) != EOK)
        return -1;
    length = vsnprintf(target, count < capacity ? count + 1 : capacity, format, values);
    if (length >= 0 && (size_t)length <= count && (size_t)length < capacity)
        return length;
    if (length < 0 || count >= capacity)
        *target = '\0';
    return -1;
}

SEC_API int snprintf_s(char *target, size_t capacity, size_t count, const char *format, ...)
{
    va_list values;
    int length;

    va_start(values, format);
    length = vsnprintf_s(target, capacity, count, format, values);
    va_end(values);
    return length;
}

SEC_API int sprintf_s(char *target, size_t capacity, const char *format, ...)
{
    va_list values;
    int length;

    va_start(values, format);
    length = vsnprintf_s(target, capacity, MOST, format, values);
    va_end(values);
    return length;
}
