/* The slice that a container was given: /etc/enpu/vcann-rt/npu_info.config. */
#ifndef VRUNTIME_CONFIG_H
#define VRUNTIME_CONFIG_H

enum policy { POLICY_FIXED_SHARE = 1, POLICY_ELASTIC = 2, POLICY_BEST_EFFORT = 3 };

struct config {
    long physical_npu_id; /* 0..15 */
    long virtual_npu_id;  /* 0..99 */
    long memory_quota;    /* MiB, 1..2147483647 */
    long aicore_quota;    /* per cent, 1..100 */
    long scheduling_policy;
    char shm_id[128];
};

/* Reads the file and logs each field. Returns 0, or -1 where the file or a field is missing or out of range. */
int config_load(const char *path, struct config *config);

#endif
