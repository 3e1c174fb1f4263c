/* The cards that this process can see, as the node describes them. */
#ifndef SIM_CARDS_H
#define SIM_CARDS_H

#include <stdint.h>

#include "node.h"

enum { SIM_CARDS = 32 };

enum sim_fault { FAULT_NONE, FAULT_NOT_LOADED, FAULT_MISMATCH, FAULT_UNKNOWN };

enum sim_mig { MIG_ABSENT, MIG_OFF, MIG_ON };

struct sim_card {
    char uuid[64], name[96], bus[32];
    unsigned int index; /* on the host: the number of its device file */
    uint64_t memory, reserved, context;
    int multiprocessors, threads, blocks, major, minor, clock_mhz, power_w, persistence, unified, mig, lost;
};

struct sim_driver {
    enum sim_fault fault;
    char version[32], library[32];
    int cuda; /* 12080 is CUDA 12.8 */
    int count;
    struct sim_card cards[SIM_CARDS];
};

/* Fills in how the driver is and which cards can be seen; by index. A node that doesn't answer is FAULT_NOT_LOADED. */
void sim_look(struct sim_driver *driver);

#endif
