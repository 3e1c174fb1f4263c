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

enum { UNSET = -1, LONGEST_LINE = 256 };

struct number {
    const char *key;
    size_t offset;
    int least, most;
};

static const struct number numbers[] = {
    {"physical-npu-id", offsetof(struct config, physical_npu_id), 0, 15},
    {"virtual-npu-id", offsetof(struct config, virtual_npu_id), 0, MOST_VNPUS - 1},
    {"memory-quota", offsetof(struct config, memory_quota), 1, INT_MAX},
    {"scheduling-policy", offsetof(struct config, scheduling_policy), POLICY_FIXED_SHARE, POLICY_BEST_EFFORT},
    {"aicore-quota", offsetof(struct config, aicore_quota), 1, 100},
};
enum { NUMBERS = sizeof numbers / sizeof *numbers };

static int *field(struct config *config, const struct number *number)
{
    return (int *)((char *)config + number->offset);
}

static int parse_number(const char *text, int *value)
{
    char *end;

    errno = 0;
    long parsed = strtol(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || parsed < INT_MIN || parsed > INT_MAX || parsed == UNSET)
        return 1;
    *value = (int)parsed;
    return 0;
}

static int set(struct config *config, const char *key, const char *value)
{
    for (size_t i = 0; i < NUMBERS; i++)
        if (strcmp(key, numbers[i].key) == 0)
            return parse_number(value, field(config, &numbers[i]));
    if (strcmp(key, "shm-id") == 0)
        return strlen(value) < sizeof config->shm_id
                   ? strncpy_s(config->shm_id, sizeof config->shm_id, value, strlen(value))
                   : 1;
    LOG_WARN("Undefined config key: %s", key);
    return 1;
}

/* A `char` is signed on some machines: there, bytes above 0x7f count as control characters. */
static void squeeze(char *line)
{
    char *to = line;

    for (const char *from = line; *from != '\0'; from++)
        if (*from >= '!')
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

static int missing(const char *key)
{
    LOG_ERROR("\"%s\" is not set. Please check the config and add it as a new line: \"%s=VALUE\"", key, key);
    return 1;
}

static int check(struct config *config)
{
    for (size_t i = 0; i < NUMBERS; i++)
        if (*field(config, &numbers[i]) == UNSET)
            return missing(numbers[i].key);
    if (*config->shm_id == '\0')
        return missing("shm-id");
    for (size_t i = 0; i < NUMBERS; i++) {
        int value = *field(config, &numbers[i]);
        int is_free = config->scheduling_policy == POLICY_BEST_EFFORT &&
                      numbers[i].offset == offsetof(struct config, aicore_quota);

        if (!is_free && (value < numbers[i].least || value > numbers[i].most)) {
            LOG_ERROR("Failed to load param [%s]: [%d] must be in range of [%d] and [%d]", numbers[i].key, value,
                      numbers[i].least, numbers[i].most);
            return 1;
        }
    }
    return 0;
}

int config_load(const char *path, struct config *config)
{
    static char line[LONGEST_LINE];
    FILE *file = fopen(path, "re");

    if (file == NULL) {
        LOG_ERROR("Failed to open file: %s, error msg: %s.", path, strerror(errno));
        return 1;
    }
    memset_s(config, sizeof *config, 0, sizeof *config);
    for (size_t i = 0; i < NUMBERS; i++)
        *field(config, &numbers[i]) = UNSET;
    while (fgets(line, sizeof line, file) != NULL)
        take_line(config, line);
    fclose(file);
    return check(config);
}
