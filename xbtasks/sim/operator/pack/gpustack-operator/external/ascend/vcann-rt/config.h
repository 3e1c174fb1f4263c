/* The slice that a container was given: /etc/enpu/vcann-rt/npu_info.config. */
#ifndef VRUNTIME_CONFIG_H
#define VRUNTIME_CONFIG_H

enum policy { POLICY_FIXED_SHARE = 1, POLICY_ELASTIC = 2, POLICY_BEST_EFFORT = 3 };

enum { MOST_VNPUS = 100 };

struct config {
    int physical_npu_id; /* 0..15 */
    int virtual_npu_id;  /* 0..99 */
    int memory_quota;    /* MiB, 1..2147483647 */
    int aicore_quota;    /* per cent, 1..100; of no account with best effort, but it must be given */
    int scheduling_policy;
    char shm_id[128];
};

/* Reads the file and logs each field. Returns 0, or 1 where the file or a field is missing or out of range. */
int config_load(const char *path, struct config *config);

#endif
