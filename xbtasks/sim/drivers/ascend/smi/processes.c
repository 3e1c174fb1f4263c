/* The part of npu-smi's table that lists the processes. */
#include <stdio.h>
#include <string.h>

#include "smi.h"

enum { MEBIBYTE_BITS = 20 };

/* A process of this namespace has its name here; one of another is asked of the node. */
static void name_of(unsigned int pid, char *name, size_t size)
{
    struct node_answer answer;
    char path[32];
    FILE *file;

    snprintf(path, sizeof path, "/proc/%u/comm", pid);
    file = fopen(path, "re");
    if (file != NULL && fgets(name, (int)size, file) != NULL) {
        name[strcspn(name, "\n")] = '\0';
    } else {
        node_ask(&answer, "ascend\tname\t%u", pid);
        snprintf(name, size, "%.*s", (int)size - 1, answer.count > 0 ? node_text(&answer, 0) : "NA");
    }
    if (file != NULL)
        fclose(file);
}

static int show_die(const struct sim_die *die, int width)
{
    struct node_answer answer;

    node_ask(&answer, "ascend\tprocesses\t%d", die->phy_id);
    for (int i = 0; i + 1 < answer.count; i += 2) {
        unsigned int pid = (unsigned int)node_number(&answer, i);
        char name[25];

        name_of(pid, name, sizeof name);
        printf("| %-7d %-17d | %-13u | %-24s | %-*u|\n", die->npu_id, die->chip_id, pid, name, width - 74,
               (unsigned int)(node_number(&answer, i + 1) >> MEBIBYTE_BITS));
    }
    return answer.count / 2;
}

void show_processes(const struct sim_board *board, const char *rule, int width)
{
    char thin[160];

    snprintf(thin, sizeof thin, "%s", rule);
    for (char *mark = strchr(thin, '='); mark != NULL; mark = strchr(mark, '='))
        *mark = '-';
    printf("%s| %-7s %-17s | %-13s | %-24s | %-*s|\n%s", thin, "NPU", "Chip", "Process id", "Process name", width - 74,
           "Process memory(MB)", rule);
    for (int i = 0; i < board->count;) {
        int card = board->dies[i].npu_id, found = 0;

        for (; i < board->count && board->dies[i].npu_id == card; i++)
            found += show_die(&board->dies[i], width);
        if (found == 0)
            printf("| No running processes found in NPU %-*d|\n", width - 37, card);
        fputs(rule, stdout);
    }
}
