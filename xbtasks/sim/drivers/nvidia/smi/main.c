/* nvidia-smi of the simulated driver: what it is asked for, and how it ends. Exit statuses: nvidia-smi(1), "Return
 * value". */
#include <stdio.h>
#include <string.h>

#include "smi.h"

static const char usage[] =
    "NVIDIA System Management Interface (SIMULATED)\n"
    "\n"
    "    nvidia-smi                                          the table\n"
    "    nvidia-smi -L                                       one line for each card\n"
    "    nvidia-smi --query-gpu=FIELD,... --format=csv[,noheader][,nounits]\n"
    "    nvidia-smi --query-compute-apps=FIELD,... --format=csv[,noheader][,nounits]\n"
    "    -i, --id=INDEX|UUID|BUS                             only that card\n";

struct request {
    const char *cards, *processes, *format, *wanted;
    int list, help;
};

/* The value of an option that is written as "--name=value"; NULL if the argument is another. */
static const char *value_of(const char *argument, const char *name)
{
    size_t length = strlen(name);

    return strncmp(argument, name, length) == 0 && argument[length] == '=' ? argument + length + 1 : NULL;
}

static int parse(int count, char **arguments, struct request *request)
{
    for (int i = 1; i < count; i++) {
        const char *value;

        if (strcmp(arguments[i], "-h") == 0 || strcmp(arguments[i], "--help") == 0)
            request->help = 1;
        else if (strcmp(arguments[i], "-L") == 0 || strcmp(arguments[i], "--list-gpus") == 0)
            request->list = 1;
        else if (strcmp(arguments[i], "-i") == 0 && i + 1 < count)
            request->wanted = arguments[++i];
        else if ((value = value_of(arguments[i], "--id")) != NULL)
            request->wanted = value;
        else if ((value = value_of(arguments[i], "--query-gpu")) != NULL)
            request->cards = value;
        else if ((value = value_of(arguments[i], "--query-compute-apps")) != NULL)
            request->processes = value;
        else if ((value = value_of(arguments[i], "--format")) != NULL)
            request->format = value;
        else {
            printf("Invalid combination of input arguments. Please run 'nvidia-smi -h' for help.\n\n");
            return 0;
        }
    }
    return 1;
}

/* Why NVML can't be used. */
static int refuse(const struct smi *smi, nvmlReturn_t result)
{
    char version[80] = "", *own;

    switch (result) {
    case NVML_ERROR_DRIVER_NOT_LOADED:
        printf("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the "
               "latest NVIDIA driver is installed and running.\n\n");
        return EXIT_NO_DRIVER;
    case NVML_ERROR_LIB_RM_VERSION_MISMATCH:
        printf("Failed to initialize NVML: %s\n", smi->calls.nvmlErrorString(result));
        if (smi->calls.nvmlSystemGetNVMLVersion(version, sizeof version) == NVML_SUCCESS) {
            own = strchr(version, '.'); /* after CUDA's */
            printf("NVML library version: %s\n", own == NULL ? version : own + 1);
        }
        return EXIT_MISMATCH;
    default:
        printf("Failed to initialize NVML: %s\n", smi->calls.nvmlErrorString(result));
        return result == NVML_ERROR_UNKNOWN ? EXIT_UNKNOWN : (int)result;
    }
}

static int look(struct smi *smi)
{
    nvmlReturn_t result = smi->calls.nvmlInitWithFlags(0);

    if (result != NVML_SUCCESS)
        return refuse(smi, result);
    smi->calls.nvmlSystemGetDriverVersion(smi->driver, sizeof smi->driver);
    smi->calls.nvmlSystemGetCudaDriverVersion_v2(&smi->cuda);
    smi->calls.nvmlDeviceGetCount_v2(&smi->count);
    if (smi->count == 0) {
        printf("No devices were found\n");
        return EXIT_NO_DEVICE;
    }
    if (smi->count > SMI_CARDS)
        smi->count = SMI_CARDS;
    for (unsigned int i = 0; i < smi->count; i++) {
        smi->cards[i].index = i;
        card_read(smi, &smi->cards[i]);
    }
    return 0;
}

static int answer(struct smi *smi, const struct request *request)
{
    struct format format = {1, 1};

    if ((request->cards != NULL || request->processes != NULL) &&
        (request->format == NULL || !format_parse(request->format, &format))) {
        printf("\"--format=\" switch is missing. This switch is mandatory when performing a query.\n\n");
        return EXIT_INVALID;
    }
    if (request->cards != NULL)
        return query_cards(smi, request->cards, format, request->wanted);
    if (request->processes != NULL)
        return query_processes(smi, request->processes, format, request->wanted);
    return request->list ? show_list(smi, request->wanted) : show_table(smi, request->wanted);
}

int main(int count, char **arguments)
{
    static struct smi smi;
    struct request request = {0};
    int status;

    if (!parse(count, arguments, &request))
        return EXIT_INVALID;
    if (request.help) {
        printf("%s", usage);
        return 0;
    }
    if (!calls_open(&smi.calls)) {
        printf("NVIDIA-SMI couldn't find libnvidia-ml.so library in your system. Please make sure that the NVIDIA "
               "Display Driver is properly installed and present in your system.\n"
               "Please also try adding directory that contains libnvidia-ml.so to your system PATH.\n\n");
        return EXIT_NO_LIBRARY;
    }
    status = look(&smi);
    if (status == 0)
        status = answer(&smi, &request);
    smi.calls.nvmlShutdown();
    return status;
}
