/* The lines that are on their way from those who write them to the thread that puts them out. */
#ifndef VRUNTIME_LOG_QUEUE_H
#define VRUNTIME_LOG_QUEUE_H

#include "log.h"

enum { LOG_QUEUE_SIZE = 256, LOG_LINE = 1024 };

struct log_line {
    enum log_level level;
    char text[LOG_LINE];
};

/* Waits a little for room. Returns 0, or 1 where the line is lost: nobody puts lines out in a forked child. */
int log_queue_push(const struct log_line *line);

/* Waits for a line. */
void log_queue_pop(struct log_line *line);

#endif
