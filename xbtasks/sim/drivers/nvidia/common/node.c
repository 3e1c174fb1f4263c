#include "node.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

enum { NODE_QUESTION = 512, PATIENCE_SECONDS = 20 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int connection = -1;

static void hang_up(void)
{
    if (connection >= 0)
        close(connection);
    connection = -1;
}

/* A child must not keep its parent's connection open: the node frees what a process held when it closes. */
static void leave_to_parent(void)
{
    pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;

    lock = fresh; /* some other thread of the parent may have held it */
    hang_up();
}

/* XBTASKS_SIM_NODE is set on the simulated host itself: containers have the socket at one place. */
static const char *node_socket(void)
{
    const char *elsewhere = getenv("XBTASKS_SIM_NODE");

    return elsewhere == NULL ? SIM_NODE_SOCKET : elsewhere;
}

int node_file(char *path, size_t size, const char *name)
{
    const char *socket_path = node_socket(), *last = strrchr(socket_path, '/');
    int length = snprintf(path, size, "%.*s/%s", last == NULL ? 0 : (int)(last - socket_path), socket_path, name);

    return length >= 0 && (size_t)length < size;
}

static int connect_to_node(void)
{
    static int registered;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct timeval patience = {.tv_sec = PATIENCE_SECONDS};

    if (strlen(node_socket()) >= sizeof address.sun_path)
        return -1;
    strcpy(address.sun_path, node_socket());
    if (!registered && pthread_atfork(NULL, NULL, leave_to_parent) != 0)
        return -1;
    registered = 1;
    connection = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (connection >= 0 && connect(connection, (struct sockaddr *)&address, sizeof address) != 0) {
        close(connection);
        connection = -1;
    }
    if (connection >= 0)
        setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    return connection;
}

/* The lock is held for these. */
static int say(const char *text, int length)
{
    ssize_t sent;

    if (length < 0 || length >= NODE_QUESTION || (connection < 0 && connect_to_node() < 0))
        return 0;
    do
        sent = send(connection, text, (size_t)length, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent == length;
}

static ssize_t hear(char *answer, size_t size)
{
    ssize_t got;

    do
        got = recv(connection, answer, size, 0);
    while (got < 0 && errno == EINTR);
    return got;
}

static void split(struct node_answer *answer)
{
    char *rest = strchr(answer->text, '\t');

    answer->count = 0;
    while (rest != NULL && answer->count < NODE_FIELDS) {
        *rest++ = '\0';
        answer->fields[answer->count++] = rest;
        rest = strchr(rest, '\t');
    }
    if (rest != NULL)
        *rest = '\0';
}

static uint64_t parse(const char *text)
{
    uint64_t number = 0;

    for (; *text >= '0' && *text <= '9'; text++)
        number = number * 10 + (uint64_t)(*text - '0');
    return number;
}

static enum node_status ask(struct node_answer *answer, const char *format, va_list values)
{
    char question[NODE_QUESTION];
    int length = vsnprintf(question, sizeof question, format, values);
    ssize_t got = -1;

    pthread_mutex_lock(&lock);
    if (say(question, length))
        got = hear(answer->text, sizeof answer->text - 1);
    if (got <= 0)
        hang_up();
    pthread_mutex_unlock(&lock);
    answer->text[got > 0 ? got : 0] = '\0';
    split(answer);
    answer->status = got > 0 ? (enum node_status)parse(answer->text) : NODE_ABSENT;
    return answer->status;
}

enum node_status node_ask(struct node_answer *answer, const char *format, ...)
{
    va_list values;
    enum node_status status;

    va_start(values, format);
    status = ask(answer, format, values);
    va_end(values);
    return status;
}

enum node_status node_tell(uint64_t *number, const char *format, ...)
{
    struct node_answer answer;
    va_list values;

    va_start(values, format);
    ask(&answer, format, values);
    va_end(values);
    if (number != NULL)
        *number = node_number(&answer, 0);
    return answer.status;
}

int node_note(const char *format, ...)
{
    char text[NODE_QUESTION];
    va_list values;
    int length, said;

    va_start(values, format);
    length = vsnprintf(text, sizeof text, format, values);
    va_end(values);
    pthread_mutex_lock(&lock);
    said = say(text, length);
    if (!said)
        hang_up();
    pthread_mutex_unlock(&lock);
    return said;
}

uint64_t node_number(const struct node_answer *answer, int field)
{
    return parse(node_text(answer, field));
}

const char *node_text(const struct node_answer *answer, int field)
{
    return field < answer->count ? answer->fields[field] : "";
}
