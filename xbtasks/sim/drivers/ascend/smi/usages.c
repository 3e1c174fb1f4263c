/* npu-smi info -t usages: how full and how busy the chips of a card are. */
#include <stdio.h>

#include "smi.h"

enum { MEBIBYTE_BITS = 20, VECTOR_SINCE = 24 };

unsigned int used_mib(const struct sim_die *die)
{
    uint64_t used;

    node_tell(&used, "ascend\tmemory\t%d", die->phy_id);
    return (unsigned int)(used >> MEBIBYTE_BITS);
}

unsigned int core_load(const struct sim_die *die)
{
    uint64_t load;

    node_tell(&load, "ascend\tload\t%d", die->phy_id);
    return (unsigned int)load;
}

unsigned int memory_mib(const struct sim_die *die)
{
    return (unsigned int)(die->memory >> MEBIBYTE_BITS);
}

static void memory(const char *kind, unsigned int capacity, unsigned int used)
{
    char label[40];

    snprintf(label, sizeof label, "%s Capacity(MB)", kind);
    field(label, "%u", capacity);
    snprintf(label, sizeof label, "%s Usage Rate(%%)", kind);
    field(label, "%u", capacity == 0 ? 0 : 100 * used / capacity);
}

static void chip(const struct sim_board *board, const struct sim_die *die)
{
    int is_310p = board->layout == LAYOUT_310P, is_old = driver_major(board) < VECTOR_SINCE;
    unsigned int load = core_load(die), used = used_mib(die), capacity = memory_mib(die);

    memory("DDR", is_310p ? capacity : 0, is_310p ? used : 0);
    field("DDR Hugepages Total(page)", "0");
    field("DDR Hugepages Usage Rate(%)", "0");
    if (!is_310p)
        memory("HBM", capacity, used);
    field("Aicore Usage Rate(%)", "%u", load);
    if (!is_310p && !is_old)
        field("Aivector Usage Rate(%)", "0");
    field("Aicpu Usage Rate(%)", "0");
    field("Ctrlcpu Usage Rate(%)", "6");
    field("DDR Bandwidth Usage Rate(%)", "0");
    if (!is_310p)
        field("HBM Bandwidth Usage Rate(%)", "0");
    if (!is_310p && !is_old) {
        field("NPU Utilization(%)", "%u", load);
        field("Aicube Usage Rate(%)", "%u", load);
    }
}

void show_usages(const struct sim_board *board, const struct request *request)
{
    const struct sim_die *die = sim_by_card(board, request->card, request->chip);

    if (die != NULL && board->layout != LAYOUT_A5) {
        chip(board, die);
        return;
    }
    field("NPU ID", "%d", request->card);
    for (int i = 0; i < board->known; i++) {
        if (board->dies[i].npu_id != request->card)
            continue;
        if (board->layout == LAYOUT_A5) {
            chip(board, &board->dies[i]);
            return;
        }
        if (first_of_card(board, i))
            field("Chip Count", "%d", board->dies[i].chips);
        putchar('\n');
        chip(board, &board->dies[i]);
        field("Chip ID", "%d", board->dies[i].chip_id);
    }
}
