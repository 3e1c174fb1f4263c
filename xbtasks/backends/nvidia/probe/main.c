/* The probe: asks the CUDA driver and NVML what a workload would ask them, and says what they answered.
 *
 * Usage: probe NAME OPERATION... [-- NAME OPERATION...]...  Each group is a process of its own. They run one after
 * another, but for the operation "next", which lets the following group run to its end first. Prints one JSON
 * document on stdout; on stderr a line before each operation, so that a crash tells where.
 *
 * Contract: CUDA Driver API and NVML API reference manuals. Every function is had by dlopen and dlsym, as the CUDA
 * runtime and nvidia-smi have them: it takes neither headers nor stubs of theirs to compile this. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probe.h"

enum { NO_PROCESS = 71, NEXT = '\1', KILLED = 128 };

/* A child's ends of its two pipes: what it says goes up, and the answer to "next" comes down. */
static int up = 1, down = -1;

/* next: lets the following group run to its end. */
static void op_next(void)
{
    char byte = NEXT;

    write_all(up, &byte, 1);
    put("\"rc\":%d", read(down, &byte, 1) == 1 ? 0 : ABSENT);
}

static void perform(char *operation)
{
    char *values = strchr(operation, ':');
    size_t length = values == NULL ? strlen(operation) : (size_t)(values - operation);
    char name[16] = "";

    memcpy(name, operation, length < sizeof name ? length : sizeof name - 1);
    fprintf(stderr, "xbtasks-probe: %s\n", operation);
    put("{\"op\":");
    put_string(operation);
    put(",");
    values = values == NULL ? operation + length : values + 1;
    if (strcmp(name, "init") == 0)
        op_init();
    else if (strcmp(name, "device") == 0)
        op_device(values);
    else if (strcmp(name, "info") == 0)
        op_info();
    else if (strcmp(name, "mark") == 0)
        op_mark(values);
    else if (strcmp(name, "nvml") == 0)
        op_nvml();
    else if (strcmp(name, "maps") == 0)
        op_maps(values);
    else if (strcmp(name, "take") == 0)
        op_take(values);
    else if (strcmp(name, "give") == 0)
        op_give(values);
    else if (strcmp(name, "rate") == 0)
        op_rate(values, 0);
    else if (strcmp(name, "rate-ex") == 0)
        op_rate(values, 1);
    else if (strcmp(name, "lookup") == 0)
        op_lookup();
    else if (strcmp(name, "next") == 0)
        op_next();
    else
        put("\"rc\":%d", ABSENT);
    put("}");
}

static int ends(const char *word)
{
    return word == NULL || strcmp(word, "--") == 0;
}

/* What has been done is said at once: it isn't lost with the process. */
static void perform_all(char **operations)
{
    for (int i = 0; !ends(operations[i]); i++) {
        struct text text = {0};

        current = &text;
        put("%s", i > 0 ? "," : "");
        perform(operations[i]);
        write_all(up, text.start, text.length);
        free(text.start);
    }
}

static char **process(char **words, struct text *document, int *failed);

/* Collects what a child says until it has ended; runs the following groups when it says "next". */
static char **listen(int from, int to, struct text *said, char **following, struct text *document, int *failed)
{
    char part[4096];
    ssize_t size;

    while ((size = read(from, part, sizeof part)) > 0 || (size < 0 && errno == EINTR)) {
        if (size > 0 && part[size - 1] == NEXT) {
            append(said, part, (size_t)size - 1);
            if (following != NULL)
                following = process(following, document, failed);
            write_all(to, part + size - 1, 1);
        } else if (size > 0) {
            append(said, part, (size_t)size);
        }
    }
    return following;
}

/* Runs the group that "words" begin with; returns where the first group begins that hasn't run, or NULL. */
static char **process(char **words, struct text *document, int *failed)
{
    struct text said = {0};
    char **following = words;
    int upwards[2], downwards[2], status = 0;
    pid_t child;

    while (!ends(*following))
        following++;
    following = *following == NULL ? NULL : following + 1;
    if (pipe(upwards) != 0 || pipe(downwards) != 0 || (child = fork()) < 0)
        exit(NO_PROCESS);
    if (child == 0) {
        close(upwards[0]);
        close(downwards[1]);
        up = upwards[1];
        down = downwards[0];
        perform_all(words + 1);
        exit(0);
    }
    close(upwards[1]);
    close(downwards[0]);
    following = listen(upwards[0], downwards[1], &said, following, document, failed);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    close(upwards[0]);
    close(downwards[1]);
    status = WIFSIGNALED(status) ? KILLED + WTERMSIG(status) : WEXITSTATUS(status);
    if (*failed == 0)
        *failed = status;
    current = document;
    put("%s{\"name\":", document->start[document->length - 1] == '[' ? "" : ",");
    put_string(words[0]);
    put(",\"status\":%d,\"events\":[", status);
    append(document, said.start, said.length);
    put("]}");
    free(said.start);
    return following;
}

int main(int count, char **arguments)
{
    struct text document = {0};
    char **words = count > 1 ? arguments + 1 : NULL;
    int failed = 0;

    current = &document;
    put("{\"xbtasks-probe\":1,\"processes\":[");
    while (words != NULL && *words != NULL)
        words = process(words, &document, &failed);
    current = &document;
    put("]}\n");
    write_all(1, document.start, document.length);
    return failed;
}
