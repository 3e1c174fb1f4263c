/* Log lines:
 * [2026-11-30 10:45:48.717] [INFO] [eNPU] [vCANN_RT] [<pid>:<thread>:<file>:<line>] <message> */
#define _DEFAULT_SOURCE /* not _GNU_SOURCE: its strtol needs a newer C library than the toolkit images have */
#include "log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "c_sec.h"
#include "log_queue.h"

#define LOG_FOLDER "/var/log/enpu/vcann-rt/"
enum { LINES_PER_FLUSH = 10, NS_PER_MS = 1000000 };

static const char *const names[] = {"FATAL", "ERROR", "WARN", "INFO", "DEBUG"};
static enum log_level level_limit = LOG_LEVEL_INFO;
static FILE *log_file;
static int opened;

/* Blanks in front of the number are let pass, behind it they aren't; an empty text is 0. */
static void read_level(void)
{
    const char *text = getenv("ENPU_LOG_LEVEL");
    char *end;

    if (text == NULL)
        return;
    long value = strtol(text, &end, 10);
    if (*end == '\0' && value >= LOG_LEVEL_FATAL && value <= LOG_LEVEL_DEBUG)
        level_limit = (enum log_level)value;
    else
        fprintf(stderr, "[eNPU] Log init: invalid ENPU_LOG_LEVEL='%s', using default.\n", text);
}

static void put_out(const struct log_line *line)
{
    static int unflushed;

    if (line->level < LOG_LEVEL_DEBUG)
        fputs(line->text, stderr);
    fputs(line->text, log_file);
    if (++unflushed >= LINES_PER_FLUSH || line->level <= LOG_LEVEL_ERROR) {
        fflush(log_file);
        unflushed = 0;
    }
}

static void *writer(void *unused)
{
    static struct log_line line;

    for (;;) {
        log_queue_pop(&line);
        put_out(&line);
    }
    return unused;
}

static int open_file(void)
{
    char path[160], stamp[32];
    time_t now = time(NULL);
    struct tm parts;

    mkdir("/var/log/enpu", 0750);
    mkdir(LOG_FOLDER, 0750); /* where it failed, opening the file does */
    localtime_r(&now, &parts);
    strftime(stamp, sizeof stamp, "%Y%m%d%H%M%S", &parts);
    if (snprintf_s(path, sizeof path, sizeof path - 1, LOG_FOLDER "eNPU_vCANN_RT_%d_%s.log", (int)getpid(), stamp) < 0)
        return -1;
    log_file = fopen(path, "ae");
    return log_file == NULL ? -1 : fchmod(fileno(log_file), 0640);
}

static void start(void)
{
    pthread_t thread;

    read_level();
    printf("[eNPU] dir_path: %s\n", LOG_FOLDER);
    if (open_file() != 0) {
        fprintf(stderr, "[eNPU] Log init failed: unable to open a file in %s.\n", LOG_FOLDER);
        return;
    }
    if (pthread_create(&thread, NULL, writer, NULL) != 0) {
        fprintf(stderr, "[eNPU] Log init failed: unable to create log consumer thread.\n");
        return;
    }
    pthread_detach(thread);
    printf("[eNPU] Async logging enabled with queue size %d.\n", LOG_QUEUE_SIZE);
    opened = 1;
}

int log_open(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, start);
    return !opened;
}

void log_write(enum log_level level, const char *file, int line, const char *format, ...)
{
    struct log_line message = {.level = level};
    const char *name = strrchr(file, '/');
    char stamp[32], text[LOG_LINE - 160];
    struct timespec now;
    struct tm parts;
    va_list values;

    if (!opened) {
        fprintf(stderr, "[eNPU] Log module not initialized, cannot print log.\n");
        return;
    }
    if (level > level_limit)
        return;
    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    clock_gettime(CLOCK_REALTIME, &now);
    localtime_r(&now.tv_sec, &parts);
    strftime(stamp, sizeof stamp, "%Y-%m-%d %H:%M:%S", &parts);
    snprintf_s(message.text, sizeof message.text, sizeof message.text - 1,
               "[%s.%03ld] [%s] [eNPU] [vCANN_RT] [%d:%lu:%s:%d] %s\n", stamp, now.tv_nsec / NS_PER_MS, names[level],
               (int)getpid(), (unsigned long)pthread_self(), name == NULL ? file : name + 1, line, text);
    if (log_queue_push(&message) != 0)
        fprintf(stderr, "[eNPU] Log queue push failed: log system unavailable (queue full).\n");
}
