/* Writes log lines:
 * [2026-11-30 10:45:48.717] [INFO] [eNPU] [vCANN_RT] [<pid>:<thread>:<file>:<line>] <message> */
#define _DEFAULT_SOURCE /* not _GNU_SOURCE: its strtol needs a newer C library than the toolkit images have */
#include "log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "c_sec.h"

static const char *const folders[] = {"/var/log/enpu", "/var/log/enpu/vcann-rt"};
static const char *const names[] = {"FATAL", "ERROR", "WARN", "INFO", "DEBUG"};
static enum log_level level_limit = LOG_LEVEL_INFO;
static FILE *log_file;

static void read_level(void)
{
    const char *text = getenv("ENPU_LOG_LEVEL");
    char *end;

    if (text == NULL)
        return;
    long value = strtol(text, &end, 10);
    if (end != text && *end == '\0' && value >= LOG_LEVEL_FATAL && value <= LOG_LEVEL_DEBUG)
        level_limit = (enum log_level)value;
    else
        fprintf(stderr, "[eNPU] Log init: invalid ENPU_LOG_LEVEL='%s', using default.\n", text);
}

int log_open(void)
{
    char path[160], stamp[32];
    time_t now = time(NULL);
    struct tm parts;

    if (log_file != NULL)
        return 0;
    read_level();
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        mkdir(folders[i], 0750);
    localtime_r(&now, &parts);
    strftime(stamp, sizeof stamp, "%Y%m%d%H%M%S", &parts);
    if (snprintf_s(path, sizeof path, sizeof path - 1, "%s/eNPU_vCANN_RT_%d_%s.log", folders[1], (int)getpid(),
                   stamp) < 0)
        return -1;
    log_file = fopen(path, "ae");
    if (log_file == NULL)
        return -1;
    fchmod(fileno(log_file), 0640);
    return 0;
}

void log_write(enum log_level level, const char *file, int line, const char *format, ...)
{
    char stamp[32], message[1024];
    const char *name = strrchr(file, '/');
    struct timespec now;
    struct tm parts;
    va_list arguments;

    if (level > level_limit)
        return;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    clock_gettime(CLOCK_REALTIME, &now);
    localtime_r(&now.tv_sec, &parts);
    strftime(stamp, sizeof stamp, "%Y-%m-%d %H:%M:%S", &parts);
    FILE *const outputs[] = {level < LOG_LEVEL_DEBUG ? stderr : NULL, log_file};
    for (size_t i = 0; i < sizeof outputs / sizeof *outputs; i++) {
        if (outputs[i] == NULL)
            continue;
        fprintf(outputs[i], "[%s.%03ld] [%s] [eNPU] [vCANN_RT] [%d:%d:%s:%d] %s\n", stamp, now.tv_nsec / 1000000,
                names[level], (int)getpid(), (int)syscall(SYS_gettid), name == NULL ? file : name + 1, line, message);
        fflush(outputs[i]);
    }
}
