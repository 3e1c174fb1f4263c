/* The table that nvidia-smi shows when it isn't asked for anything else, as drivers from 550 on print it. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "smi.h"

#define EDGE "+-----------------------------------------------------------------------------------------+\n"
#define EDGE3 "+-----------------------------------------+------------------------+----------------------+\n"

static void put(const char *text)
{
    fputs(text, stdout);
}

static void print_head(const struct smi *smi)
{
    time_t now = time(NULL);
    struct tm local;
    char when[64], cuda[32];

    localtime_r(&now, &local);
    strftime(when, sizeof when, "%a %b %e %H:%M:%S %Y", &local);
    snprintf(cuda, sizeof cuda, "%d.%d", smi->cuda / 1000, smi->cuda % 1000 / 10);
    printf("%s       \n", when);
    put(EDGE);
    printf("| NVIDIA-SMI %-21s  Driver Version: %-13s  CUDA Version: %-9s|\n", smi->driver, smi->driver, cuda);
    put("|-----------------------------------------+------------------------+----------------------+\n");
    put("| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |\n");
    put("| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |\n");
    put("|                                         |                        |               MIG M. |\n");
    put("|=========================================+========================+======================|\n");
}

static void print_card(const struct smi_card *card)
{
    char power[32] = "N/A", limit[32] = "N/A", memory[64] = "Not Supported", load[32] = "N/A";
    const char *mig = card->mig.result != NVML_SUCCESS ? "N/A" : card->mig.value ? "Enabled" : "Disabled";

    if (card->power.result == NVML_SUCCESS)
        snprintf(power, sizeof power, "%lluW", card->power.value / 1000);
    if (card->power_limit.result == NVML_SUCCESS)
        snprintf(limit, sizeof limit, "%lluW", card->power_limit.value / 1000);
    if (card->total.result == NVML_SUCCESS)
        snprintf(memory, sizeof memory, "%7lluMiB / %6lluMiB", card->used.value >> 20, card->total.value >> 20);
    if (card->load.result == NVML_SUCCESS)
        snprintf(load, sizeof load, "%llu%%", card->load.value);
    printf("| %3u  %-25.25s  %7s |   %s %-4s| %20s |\n", card->index, card->name, card->persistence ? "On" : "Off",
           card->bus, card->display ? "On" : "Off", card->mig.result == NVML_SUCCESS ? "0" : "N/A");
    printf("| N/A %4lluC    P%-4llu %12s / %5s | %22s | %7s %12s |\n", card->temperature.value, card->state.value,
           power, limit, memory, load, "Default");
    printf("|                                         |                        | %20s |\n", mig);
    put(EDGE3);
}

static int print_process(struct smi *smi, unsigned int card, const nvmlProcessInfo_v2_t *info, const char *type)
{
    char name[256], memory[32] = "N/A";
    size_t length;

    if (smi->calls.nvmlSystemGetProcessName(info->pid, name, sizeof name) != NVML_SUCCESS)
        return 0;
    length = strlen(name);
    if (info->usedGpuMemory != NVML_VALUE_NOT_AVAILABLE)
        snprintf(memory, sizeof memory, "%lluMiB", info->usedGpuMemory >> 20);
    if (length > 33)
        memcpy(name, name + length - 33, 34);
    printf("| %4u   N/A  N/A %15u %6s   %s%-*s %9s |\n", card, info->pid, type, length > 33 ? "..." : "",
           length > 33 ? 33 : 36, name, memory);
    return 1;
}

static void print_processes(struct smi *smi, const char *wanted)
{
    int shown = 0;

    printf("%91s\n", "");
    put(EDGE);
    put("| Processes:                                                                              |\n");
    put("|  GPU   GI   CI              PID   Type   Process name                        GPU Memory |\n");
    put("|        ID   ID                                                               Usage      |\n");
    put("|=========================================================================================|\n");
    for (unsigned int i = 0; i < smi->count; i++) {
        nvmlProcessInfo_v2_t infos[SMI_PROCESSES];
        unsigned int count = SMI_PROCESSES;

        if (smi->cards[i].handle != NVML_SUCCESS || !card_chosen(&smi->cards[i], wanted))
            continue;
        if (smi->calls.nvmlDeviceGetGraphicsRunningProcesses_v3(smi->cards[i].device, &count, infos) == NVML_SUCCESS)
            for (unsigned int j = 0; j < count; j++)
                shown |= print_process(smi, i, &infos[j], "G");
        count = SMI_PROCESSES;
        if (smi->calls.nvmlDeviceGetComputeRunningProcesses_v3(smi->cards[i].device, &count, infos) == NVML_SUCCESS)
            for (unsigned int j = 0; j < count; j++)
                shown |= print_process(smi, i, &infos[j], "C");
    }
    if (!shown)
        put("|  No running processes found                                                             |\n");
    put(EDGE);
}

static void print_mig(const struct smi *smi)
{
    int any = 0;

    for (unsigned int i = 0; i < smi->count; i++)
        any |= smi->cards[i].mig.result == NVML_SUCCESS && smi->cards[i].mig.value;
    if (!any)
        return;
    put("\n" EDGE);
    put("| MIG devices:                                                                            |\n");
    put("|------------------+----------------------------------+-----------+-----------------------+\n");
    put("| GPU  GI  CI  MIG |                     Memory-Usage |        Vol|      Shared           |\n");
    put("|      ID  ID  Dev |                       BAR1-Usage | SM     Unc| CE ENC  DEC  OFA  JPG |\n");
    put("|                  |                                  |        ECC|                       |\n");
    put("|==================+==================================+===========+=======================|\n");
    put("|  No MIG devices found                                                                   |\n");
    put(EDGE);
}

int show_table(struct smi *smi, const char *wanted)
{
    for (unsigned int i = 0; i < smi->count; i++)
        if (smi->cards[i].handle != NVML_SUCCESS) {
            printf("Unable to determine the device handle for GPU%u: GPU is lost.  Reboot the system to recover this "
                   "GPU\n",
                   i);
            return EXIT_LOST;
        }
    print_head(smi);
    for (unsigned int i = 0; i < smi->count; i++)
        if (card_chosen(&smi->cards[i], wanted))
            print_card(&smi->cards[i]);
    print_mig(smi);
    print_processes(smi, wanted);
    return 0;
}
