/* The connection to the simulated node, which stands for the kernel driver. Questions, answers and what they mean
 * are listed in answers.py. */
#ifndef SIM_NODE_H
#define SIM_NODE_H

#include <stddef.h>
#include <stdint.h>

enum node_status {
    NODE_OK = 0,
    NODE_NO_MEMORY = 1,
    NODE_NO_CARD = 2,
    NODE_UNSUPPORTED = 3,
    NODE_INVALID = 4,
    NODE_LOST = 5,
    NODE_ABSENT = 6, /* nobody answers: no kernel driver is loaded */
};

enum { NODE_TEXT = 16384, NODE_FIELDS = 640 };

/* An answer: the fields after its status, which point into text. */
struct node_answer {
    enum node_status status;
    int count;
    const char *fields[NODE_FIELDS];
    char text[NODE_TEXT];
};

/* Asks one question: a printf format whose fields are separated by tabs. Waits for the answer. */
enum node_status node_ask(struct node_answer *answer, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The same, where only the status or one number matters (0 if there is none). */
enum node_status node_tell(uint64_t *number, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Tells the node something that it doesn't answer; tells whether it could be told. */
int node_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The path of a file beside the node's socket; tells whether it fits. */
int node_file(char *path, size_t size, const char *name);

/* A field as a number; 0 if there is no such field or it isn't one. */
uint64_t node_number(const struct node_answer *answer, int field);

/* A field as a text; empty if there is no such field. */
const char *node_text(const struct node_answer *answer, int field);

#endif
