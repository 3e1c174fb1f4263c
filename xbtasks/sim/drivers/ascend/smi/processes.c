/* The part of npu-smi's table that lists the processes. */
#include <stdio.h>
#include <string.h>

#include "smi.h"

enum { MEBIBYTE_BITS = 20, WIDE = 110 };

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

/* In a wide table there is a column more; whose process it is in a container isn't told. */
static int show_die(const struct sim_die *die, int width)
{
    int wide = width >= WIDE;
    struct node_answer answer;

    node_ask(&answer, "ascend\tprocesses\t%d", die->phy_id);
    for (int i = 0; i + 1 < answer.count; i += 2) {
        unsigned int pid = (unsigned int)node_number(&answer, i);
        unsigned int mib = (unsigned int)(node_number(&answer, i + 1) >> MEBIBYTE_BITS);
        char name[25];

        name_of(pid, name, sizeof name);
        if (wide)
            printf("| %-7d %-17d | %-13u | %-18.18s | %-21u | %-23s |\n", die->npu_id, die->chip_id, pid, name, mib,
                   "NA");
        else
            printf("| %-7d %-17d | %-13u | %-24s | %-*u|\n", die->npu_id, die->chip_id, pid, name, width - 74, mib);
    }
    return answer.count / 2;
}

static void show_head(const char *rule, int width)
{
    char thin[160];

    snprintf(thin, sizeof thin, "%s", rule);
    for (char *mark = strchr(thin, '='); mark != NULL; mark = strchr(mark, '='))
        *mark = '-';
    fputs(thin, stdout);
    if (width >= WIDE)
        printf("| %-7s %-17s | %-13s | %-18s | %-21s | %-23s |\n", "NPU", "Chip", "Process id", "Process name",
               "Process memory(MB)", "Process id in container");
    else
        printf("| %-7s %-17s | %-13s | %-24s | %-*s|\n", "NPU", "Chip", "Process id", "Process name", width - 74,
               "Process memory(MB)");
    fputs(rule, stdout);
}

static int any_process(const struct sim_board *board)
{
    struct node_answer answer;
    int found = 0;

    for (int i = 0; i < board->count; i++) {
        node_ask(&answer, "ascend\tprocesses\t%d", board->dies[i].phy_id);
        found |= answer.count > 0;
    }
    return found;
}

void show_processes(const struct sim_board *board, const char *rule, int width)
{
    if (board->layout != LAYOUT_A5 || any_process(board))
        show_head(rule, width);
    for (int i = 0; i < board->count;) {
        int card = board->dies[i].npu_id, found = 0;

        for (; i < board->count && board->dies[i].npu_id == card; i++)
            found += show_die(&board->dies[i], width);
        if (found == 0)
            printf("| No running processes found in NPU %-*d|\n", width - 37, card);
        fputs(rule, stdout);
    }
}
