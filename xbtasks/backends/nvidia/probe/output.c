#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "probe.h"

enum { OUT_OF_MEMORY = 70, NOT_WRITTEN = 74 };

struct text *current;

void append(struct text *text, const char *data, size_t size)
{
    if (size > text->capacity - text->length) {
        text->capacity = (text->length + size) * 2 + 4096;
        text->start = realloc(text->start, text->capacity);
        if (text->start == NULL)
            _exit(OUT_OF_MEMORY);
    }
    memcpy(text->start + text->length, data, size);
    text->length += size;
}

void put(const char *format, ...)
{
    char part[1024];
    va_list values;
    int size;

    va_start(values, format);
    size = vsnprintf(part, sizeof part, format, values);
    va_end(values);
    append(current, part, size < (int)sizeof part ? (size_t)size : sizeof part - 1);
}

/* What is neither printable nor ASCII has no place in what the driver is asked for. */
void put_string(const char *value)
{
    put("\"");
    for (; *value != '\0'; value++)
        put("%c", *value >= ' ' && *value < 127 && *value != '"' && *value != '\\' ? *value : '?');
    put("\"");
}

void write_all(int file, const char *data, size_t size)
{
    while (size > 0) {
        ssize_t written = write(file, data, size);

        if (written < 0 && errno != EINTR)
            _exit(NOT_WRITTEN);
        if (written > 0) {
            data += written;
            size -= (size_t)written;
        }
    }
}
