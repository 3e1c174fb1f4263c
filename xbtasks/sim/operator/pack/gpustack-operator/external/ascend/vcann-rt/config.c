/* Parses npu_info.config: `key=value` lines in any order, `#` comments, blanks and control characters without
 * meaning anywhere in a line. A value that doesn't parse leaves an earlier one in place. */
#include "config.h"

#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "c_sec.h"
#include "log.h"

struct number {
    const char *key;
    size_t offset;
    long least, most;
};

static const struct number numbers[] = {
    {"physical-npu-id", offsetof(struct config, physical_npu_id), 0, 15},
    {"virtual-npu-id", offsetof(struct config, virtual_npu_id), 0, 99},
    {"memory-quota", offsetof(struct config, memory_quota), 1, INT_MAX},
    {"aicore-quota", offsetof(struct config, aicore_quota), 1, 100},
    {"scheduling-policy", offsetof(struct config, scheduling_policy), POLICY_FIXED_SHARE, POLICY_BEST_EFFORT},
};
enum { NUMBERS = sizeof numbers / sizeof *numbers };

static long *field(struct config *config, const struct number *number)
{
    return (long *)((char *)config + number->offset);
}

static int parse_number(const char *text, long *value)
{
    char *end;

    errno = 0;
    long parsed = strtol(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0')
        return -1;
    *value = parsed;
    return 0;
}

static int set(struct config *config, const char *key, const char *value)
{
    for (size_t i = 0; i < NUMBERS; i++)
        if (strcmp(key, numbers[i].key) == 0)
            return parse_number(value, field(config, &numbers[i]));
    if (strcmp(key, "shm-id") == 0 && *value != '\0')
        return strncpy_s(config->shm_id, sizeof config->shm_id, value, strlen(value)) == 0 ? 0 : -1;
    return -1;
}

static void squeeze(char *line)
{
    char *to = line;

    for (const char *from = line; *from != '\0'; from++)
        if (*from > ' ')
            *to++ = *from;
    *to = '\0';
}

static void take_line(struct config *config, char *line)
{
    char *value;

    squeeze(line);
    value = strchr(line, '=');
    if (*line == '#' || value == NULL)
        return;
    *value++ = '\0';
    if (set(config, line, value) == 0)
        LOG_INFO("Success to load config: %s, value: %s", line, value);
    else
        LOG_WARN("Failed to load config: %s, value: %s", line, value);
}

static int check(struct config *config)
{
    for (size_t i = 0; i < NUMBERS; i++) {
        long value = *field(config, &numbers[i]);

        if (value < numbers[i].least || value > numbers[i].most) {
            LOG_ERROR("config %s is missing or outside of %ld..%ld", numbers[i].key, numbers[i].least,
                      numbers[i].most);
            return -1;
        }
    }
    if (*config->shm_id == '\0') {
        LOG_ERROR("config shm-id is missing");
        return -1;
    }
    return 0;
}

int config_load(const char *path, struct config *config)
{
    char line[256];
    FILE *file = fopen(path, "re");

    memset_s(config, sizeof *config, 0, sizeof *config);
    for (size_t i = 0; i < NUMBERS; i++)
        *field(config, &numbers[i]) = -1;
    if (file == NULL) {
        LOG_ERROR("Failed to open config %s: %s", path, strerror(errno));
        return -1;
    }
    while (fgets(line, sizeof line, file) != NULL)
        take_line(config, line);
    fclose(file);
    return check(config);
}
