/* Which generation the chip is of. */
#ifndef VRUNTIME_SOC_H
#define VRUNTIME_SOC_H

enum soc { SOC_UNKNOWN, SOC_310, SOC_910, SOC_950 };

enum soc soc_generation(void);

#endif
