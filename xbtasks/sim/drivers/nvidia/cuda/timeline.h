/* When the cards are busy. The node keeps a file with the point in time until which each card has work; whoever gives a
 * card more moves that point on, without asking anybody. Then the node is told, for NVML's sake. */
#ifndef SIM_CUDA_TIMELINE_H
#define SIM_CUDA_TIMELINE_H

#include <stdint.h>

/* Gives a card work for that long, after what it has; tells when it ends. 0 where there is no node. */
int timeline_book(unsigned int card, uint64_t nanoseconds, uint64_t *end);

/* Tells the node what it hasn't been told yet. */
void timeline_flush(void);

#endif
