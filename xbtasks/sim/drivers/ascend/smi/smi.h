/* npu-smi: what is asked, and the commands. Everything that it says goes to stdout, errors too. */
#ifndef SIM_SMI_H
#define SIM_SMI_H

#include "board.h"

/* Exit codes; the shell sees them modulo 256. */
enum {
    NPU_OK = 0,
    NPU_ERR_CODE_INVALID_PARAMETER = -9001,
    NPU_ERR_CODE_OPER_NOT_PERMITTED = -9002,
    NPU_ERR_CODE_INNER_ERR = -9005,
    NPU_ERR_CODE_NOT_SUPPORT = -9255,
};

/* The options; -1 and an empty text where one isn't given. */
struct request {
    const char *type;
    int card, chip, value;
    int list, map;
};

/* Prints `<tab><label, padded> : ` and a value. */
void field(const char *label, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The first number of the driver's version. */
int driver_major(const struct sim_board *board);

/* How many bytes of a die are in use, in MiB; and how busy its cores are, in per cent. */
unsigned int used_mib(const struct sim_die *die);
unsigned int core_load(const struct sim_die *die);

unsigned int memory_mib(const struct sim_die *die);

/* Whether the die is the first one of its card that can be seen. */
int first_of_card(const struct sim_board *board, int place);

void show_table(const struct sim_board *board);
void show_list(const struct sim_board *board);
void show_map(const struct sim_board *board);
void show_board(const struct sim_board *board, const struct request *request);
void show_usages(const struct sim_board *board, const struct request *request);
int show_share(const struct sim_board *board, const struct request *request);
int set_share(const struct sim_board *board, const struct request *request);

/* The lines of a table that list the processes; `width` is the whole table's. */
void show_processes(const struct sim_board *board, const char *rule, int width);

#endif
