/* The dies that this process can see, as the node describes them. Questions are listed in answers.py. */
#ifndef SIM_BOARD_H
#define SIM_BOARD_H

#include <stdint.h>

#include "node.h"

enum { SIM_DIES = 32 };

/* What the node answers beside what node.h has. */
enum { NODE_BUSY = 16, NODE_DENIED = 17 };

enum sim_fault { FAULT_NONE, FAULT_NOT_LOADED, FAULT_BOARD_TYPE };

enum sim_layout { LAYOUT_A2, LAYOUT_A3, LAYOUT_310P, LAYOUT_A5 };

struct sim_die {
    char chip[32], npu[16], die_id[64], ndie_id[64], bus[32], health[16];
    int npu_id, chip_id, chips; /* chips: how many dies the card has */
    int logic_id, phy_id;
    uint64_t memory;
};

struct sim_board {
    enum sim_fault fault;
    char driver[32], firmware[32], soc[32];
    enum sim_layout layout;
    int count, known; /* behind the dies that can be seen stand those that dcmi knows all the same */
    struct sim_die dies[SIM_DIES];
};

/* Fills in how the driver is and which dies can be seen, by logic id. A node that doesn't answer is
 * FAULT_NOT_LOADED. */
void sim_look(struct sim_board *board);

/* The known die with that physical id, or null. */
const struct sim_die *sim_by_phy_id(const struct sim_board *board, unsigned int phy_id);

/* The known die at npu-smi's -i and -c, or null. */
const struct sim_die *sim_by_card(const struct sim_board *board, int npu_id, int chip_id);

#endif
