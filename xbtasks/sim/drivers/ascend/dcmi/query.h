/* What both series of calls come to. */
#ifndef SIM_DCMI_QUERY_H
#define SIM_DCMI_QUERY_H

#include "board.h"
#include "dcmi.h"

/* Starts the library. Returns a DCMI code. */
int query_start(void);

/* Fills in the board; returns DCMI_OK where the library was started. */
int query_board(struct sim_board *board);

/* The DCMI code for how a question to the node went. */
int query_code(int status);

int query_processes(int phy_id, struct dcmi_proc_mem_info *processes, int *count);
int query_utilization(const struct sim_board *board, int phy_id, int kind, unsigned int *rate);

#endif
