/* The log: FATAL to INFO on stderr and in a file, DEBUG in the file only, as far as ENPU_LOG_LEVEL (0 to 4, default 3)
 * lets them. Lines are written by a thread of their own: what is still queued when the process ends is lost. */
#ifndef VRUNTIME_LOG_H
#define VRUNTIME_LOG_H

enum log_level { LOG_LEVEL_FATAL, LOG_LEVEL_ERROR, LOG_LEVEL_WARN, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

/* Opens the log, once for the process. Returns 0, or 1 where its folder can't be made or written. */
int log_open(void);

void log_write(enum log_level level, const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#define LOG_ERROR(...) log_write(LOG_LEVEL_ERROR, __FILE__, __LINE__, __VA_ARGS__)
#define LOG_WARN(...) log_write(LOG_LEVEL_WARN, __FILE__, __LINE__, __VA_ARGS__)
#define LOG_INFO(...) log_write(LOG_LEVEL_INFO, __FILE__, __LINE__, __VA_ARGS__)
#define LOG_DEBUG(...) log_write(LOG_LEVEL_DEBUG, __FILE__, __LINE__, __VA_ARGS__)

#endif
