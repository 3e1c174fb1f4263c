/* "--query-gpu" and "--query-compute-apps": selected fields as CSV. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "smi.h"

enum field {
    INDEX, NAME, UUID, BUS, DRIVER, COUNT, TOTAL, USED, FREE, RESERVED, MIG, MIG_PENDING, CAPABILITY, COMPUTE_MODE,
    PERSISTENCE, DISPLAY_ACTIVE, LOAD, TEMPERATURE, POWER, POWER_LIMIT, STATE, TIMESTAMP, PID, PROCESS_NAME,
    PROCESS_MEMORY,
};

struct column {
    const char *name, *alias, *unit;
    enum field field;
};

/* The text that stands for a number that isn't reported. */
static const char *reason(nvmlReturn_t result)
{
    switch (result) {
    case NVML_ERROR_NOT_SUPPORTED:
        return "[N/A]";
    case NVML_ERROR_NO_PERMISSION:
        return "[Insufficient Permissions]";
    case NVML_ERROR_GPU_IS_LOST:
        return "[GPU is lost]";
    default:
        return "[Unknown Error]";
    }
}

/* Shifted: MiB out of bytes; and a power in watts out of milliwatts. */
static void print_number(struct reading reading, int shift, const struct column *column, int units)
{
    if (reading.result != NVML_SUCCESS) {
        printf("%s", reason(reading.result));
        return;
    }
    if (*column->unit == 'W')
        printf("%llu.%02llu", reading.value / 1000, reading.value % 1000 / 10);
    else
        printf("%llu", reading.value >> shift);
    if (units && *column->unit != '\0')
        printf(" %s", column->unit);
}

static void print_mig(struct reading mode)
{
    printf("%s", mode.result != NVML_SUCCESS ? reason(mode.result) : mode.value ? "Enabled" : "Disabled");
}

static void print_time(void)
{
    struct timespec now;
    struct tm local;

    clock_gettime(CLOCK_REALTIME, &now);
    localtime_r(&now.tv_sec, &local);
    printf("%04d/%02d/%02d %02d:%02d:%02d.%03ld", local.tm_year + 1900, local.tm_mon + 1, local.tm_mday, local.tm_hour,
           local.tm_min, local.tm_sec, now.tv_nsec / 1000000);
}

static const struct column card_columns[] = {
    {"index", "index", "", INDEX},
    {"name", "gpu_name", "", NAME},
    {"uuid", "gpu_uuid", "", UUID},
    {"pci.bus_id", "gpu_bus_id", "", BUS},
    {"driver_version", "driver_version", "", DRIVER},
    {"count", "count", "", COUNT},
    {"memory.total", "memory.total", "MiB", TOTAL},
    {"memory.used", "memory.used", "MiB", USED},
    {"memory.free", "memory.free", "MiB", FREE},
    {"memory.reserved", "memory.reserved", "MiB", RESERVED},
    {"mig.mode.current", "mig.mode.current", "", MIG},
    {"mig.mode.pending", "mig.mode.pending", "", MIG_PENDING},
    {"compute_cap", "compute_cap", "", CAPABILITY},
    {"compute_mode", "compute_mode", "", COMPUTE_MODE},
    {"persistence_mode", "persistence_mode", "", PERSISTENCE},
    {"display_active", "display_active", "", DISPLAY_ACTIVE},
    {"utilization.gpu", "utilization.gpu", "%", LOAD},
    {"temperature.gpu", "temperature.gpu", "", TEMPERATURE},
    {"power.draw", "power.draw", "W", POWER},
    {"power.limit", "enforced.power.limit", "W", POWER_LIMIT},
    {"pstate", "pstate", "", STATE},
    {"timestamp", "timestamp", "", TIMESTAMP},
    {NULL, NULL, NULL, INDEX},
};

static const struct column process_columns[] = {
    {"pid", "pid", "", PID},
    {"process_name", "name", "", PROCESS_NAME},
    {"used_gpu_memory", "used_memory", "MiB", PROCESS_MEMORY},
    {"gpu_uuid", "gpu_uuid", "", UUID},
    {"gpu_name", "gpu_name", "", NAME},
    {"gpu_bus_id", "gpu_bus_id", "", BUS},
    {"timestamp", "timestamp", "", TIMESTAMP},
    {NULL, NULL, NULL, INDEX},
};

struct row {
    struct smi *smi;
    const struct smi_card *card;
    const nvmlProcessInfo_v2_t *process;
};

static void print_process_name(struct smi *smi, unsigned int pid)
{
    char name[256];

    if (smi->calls.nvmlSystemGetProcessName(pid, name, sizeof name) != NVML_SUCCESS)
        snprintf(name, sizeof name, "[Not Found]");
    printf("%s", name);
}

static void print_field(const struct row *row, const struct column *column, int units)
{
    const struct smi_card *card = row->card;

    switch (column->field) {
    case INDEX: printf("%u", card->index); break;
    case NAME: printf("%s", card->name); break;
    case UUID: printf("%s", card->uuid); break;
    case BUS: printf("%s", card->bus); break;
    case DRIVER: printf("%s", row->smi->driver); break;
    case COUNT: printf("%u", row->smi->count); break;
    case TOTAL: print_number(card->total, 20, column, units); break;
    case USED: print_number(card->used, 20, column, units); break;
    case FREE: print_number(card->available, 20, column, units); break;
    case RESERVED: print_number(card->reserved, 20, column, units); break;
    case MIG: print_mig(card->mig); break;
    case MIG_PENDING: print_mig(card->mig_pending); break;
    case CAPABILITY: printf("%d.%d", card->major, card->minor); break;
    case COMPUTE_MODE: printf("Default"); break;
    case PERSISTENCE: printf("%s", card->persistence ? "Enabled" : "Disabled"); break;
    case DISPLAY_ACTIVE: printf("%s", card->display ? "Enabled" : "Disabled"); break;
    case LOAD: print_number(card->load, 0, column, units); break;
    case TEMPERATURE: print_number(card->temperature, 0, column, units); break;
    case POWER: print_number(card->power, 0, column, units); break;
    case POWER_LIMIT: print_number(card->power_limit, 0, column, units); break;
    case STATE: printf("P"); print_number(card->state, 0, column, units); break;
    case TIMESTAMP: print_time(); break;
    case PID: printf("%u", row->process->pid); break;
    case PROCESS_NAME: print_process_name(row->smi, row->process->pid); break;
    case PROCESS_MEMORY: {
        struct reading used = {NVML_SUCCESS, row->process->usedGpuMemory};

        print_number(used, 20, column, units);
        break;
    }
    }
}

/* Calls visit for every field of a comma list; with one that isn't known, says so and ends with 0. */
static int each_field(const char *fields, const struct column *columns,
                      void (*visit)(void *, const struct column *, int), void *what)
{
    for (int place = 0; *fields != '\0'; place++) {
        size_t length = strcspn(fields, ",");
        const struct column *column = columns;

        while (column->name != NULL && (strlen(column->name) != length || memcmp(column->name, fields, length) != 0) &&
               (strlen(column->alias) != length || memcmp(column->alias, fields, length) != 0))
            column++;
        if (column->name == NULL) {
            printf("Field \"%.*s\" is not a valid field to query.\n\n", (int)length, fields);
            return 0;
        }
        if (visit != NULL)
            visit(what, column, place);
        fields += length + (fields[length] == ',');
    }
    return 1;
}

struct printer {
    struct row row;
    int units;
};

static void print_title(void *what, const struct column *column, int place)
{
    int units = ((struct printer *)what)->units;

    printf("%s%s", place ? ", " : "", column->name);
    if (units && *column->unit != '\0')
        printf(" [%s]", column->unit);
}

static void print_cell(void *what, const struct column *column, int place)
{
    struct printer *printer = what;

    printf("%s", place ? ", " : "");
    print_field(&printer->row, column, printer->units);
}

static void print_header(const char *fields, const struct column *columns, struct format format)
{
    struct printer printer = {.units = 1};

    if (!format.header)
        return;
    printer.units = 1; /* the title names the unit whether the cells do or not */
    each_field(fields, columns, print_title, &printer);
    printf("\n");
}

static int lost(const struct smi_card *card)
{
    printf("Unable to determine the device handle for GPU%u: GPU is lost.  Reboot the system to recover this GPU\n",
           card->index);
    return EXIT_LOST;
}

int query_cards(struct smi *smi, const char *fields, struct format format, const char *wanted)
{
    int found = 0;

    if (!each_field(fields, card_columns, NULL, NULL))
        return EXIT_INVALID;
    for (unsigned int i = 0; i < smi->count; i++)
        if (smi->cards[i].handle != NVML_SUCCESS)
            return lost(&smi->cards[i]);
    print_header(fields, card_columns, format);
    for (unsigned int i = 0; i < smi->count; i++) {
        struct printer printer = {{smi, &smi->cards[i], NULL}, format.units};

        if (!card_chosen(&smi->cards[i], wanted))
            continue;
        each_field(fields, card_columns, print_cell, &printer);
        printf("\n");
        found = 1;
    }
    if (!found) {
        printf("No devices were found\n");
        return EXIT_NO_DEVICE;
    }
    return 0;
}

int query_processes(struct smi *smi, const char *fields, struct format format, const char *wanted)
{
    if (!each_field(fields, process_columns, NULL, NULL))
        return EXIT_INVALID;
    print_header(fields, process_columns, format);
    for (unsigned int i = 0; i < smi->count; i++) {
        nvmlProcessInfo_v2_t infos[SMI_PROCESSES];
        unsigned int count = SMI_PROCESSES;

        if (smi->cards[i].handle != NVML_SUCCESS)
            return lost(&smi->cards[i]);
        if (!card_chosen(&smi->cards[i], wanted) ||
            smi->calls.nvmlDeviceGetComputeRunningProcesses_v3(smi->cards[i].device, &count, infos) != NVML_SUCCESS)
            continue;
        for (unsigned int j = 0; j < count; j++) {
            struct printer printer = {{smi, &smi->cards[i], &infos[j]}, format.units};

            each_field(fields, process_columns, print_cell, &printer);
            printf("\n");
        }
    }
    return 0;
}

int format_parse(const char *text, struct format *format)
{
    *format = (struct format){1, 1};
    if (strncmp(text, "csv", 3) != 0)
        return 0;
    for (text += 3; *text != '\0';) {
        if (strncmp(text, ",noheader", 9) == 0) {
            format->header = 0;
            text += 9;
        } else if (strncmp(text, ",nounits", 8) == 0) {
            format->units = 0;
            text += 8;
        } else {
            return 0;
        }
    }
    return 1;
}
