#define _POSIX_C_SOURCE 200809L
#include "log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int chosen = 2;

void vgpu_log_start(void)
{
    const char *level = getenv("LIBCUDA_LOG_LEVEL");

    if (level != NULL)
        chosen = atoi(level);
}

/* One write for a line: processes that share stderr don't mix theirs. */
void vgpu_log(enum vgpu_level level, const char *name, const char *file, int line, const char *format, ...)
{
    char text[512], whole[640];
    unsigned long thread = (unsigned long)pthread_self();
    va_list values;

    if (level != VGPU_ERROR && (int)level > chosen)
        return;
    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    if (level == VGPU_ERROR)
        snprintf(whole, sizeof whole, "[HAMI-core %s (pid:%d thread=%lu %s:%d)]: %s\n", name, (int)getpid(), thread,
                 file, line, text);
    else
        snprintf(whole, sizeof whole, "[HAMI-core %s(%d:%lu:%s:%d)]: %s\n", name, (int)getpid(), thread, file, line,
                 text);
    fputs(whole, stderr);
}
