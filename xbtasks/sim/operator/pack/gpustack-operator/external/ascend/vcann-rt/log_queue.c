#define _DEFAULT_SOURCE
#include "log_queue.h"

#include <pthread.h>
#include <time.h>

enum { PATIENCE_NS = 100000000, NS_PER_S = 1000000000 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER;
static pthread_cond_t emptied = PTHREAD_COND_INITIALIZER;
static struct log_line lines[LOG_QUEUE_SIZE];
static unsigned int first, count;

static struct timespec deadline(void)
{
    struct timespec time;

    clock_gettime(CLOCK_REALTIME, &time);
    time.tv_nsec += PATIENCE_NS;
    time.tv_sec += time.tv_nsec / NS_PER_S;
    time.tv_nsec %= NS_PER_S;
    return time;
}

int log_queue_push(const struct log_line *line)
{
    struct timespec until = deadline();
    int lost = 0;

    pthread_mutex_lock(&lock);
    while (count == LOG_QUEUE_SIZE && !lost)
        lost = pthread_cond_timedwait(&emptied, &lock, &until) != 0;
    if (!lost)
        lines[(first + count++) % LOG_QUEUE_SIZE] = *line;
    pthread_cond_signal(&filled);
    pthread_mutex_unlock(&lock);
    return lost;
}

void log_queue_pop(struct log_line *line)
{
    pthread_mutex_lock(&lock);
    while (count == 0)
        pthread_cond_wait(&filled, &lock);
    *line = lines[first];
    first = (first + 1) % LOG_QUEUE_SIZE;
    count--;
    pthread_cond_signal(&emptied);
    pthread_mutex_unlock(&lock);
}
