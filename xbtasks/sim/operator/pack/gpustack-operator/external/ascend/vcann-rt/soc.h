/* Which generation the chip is of. */
#ifndef VRUNTIME_SOC_H
#define VRUNTIME_SOC_H

enum soc { SOC_910, SOC_310, SOC_950 };

/* Asks the toolkit. Returns 0, or 1 where it doesn't know. */
int soc_find(enum soc *soc);

#endif
