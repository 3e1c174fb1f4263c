/* Handles of cards, shared by the library's files. */
#ifndef SIM_NVML_HANDLES_H
#define SIM_NVML_HANDLES_H

#include "../common/cards.h"
#include "nvml.h"

struct nvmlDevice_st {
    struct sim_card card;
};

/* The driver, or why it can't be asked. */
nvmlReturn_t nvml_ready(struct sim_driver **driver);

/* The card with that index of the visible ones, or NULL. */
nvmlDevice_t nvml_card(unsigned int index);

/* Whether the handle is one of ours and the place for the answer is there. */
nvmlReturn_t nvml_check(nvmlDevice_t device, const void *place);

/* What the node's answer means to a program. */
nvmlReturn_t nvml_result(enum node_status status);

/* Copies a text into a buffer of that length. */
nvmlReturn_t nvml_text(char *buffer, unsigned int length, const char *text);

#endif
