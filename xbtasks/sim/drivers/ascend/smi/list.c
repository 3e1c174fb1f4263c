/* npu-smi info -l and -m: which cards there are, and which chips. */
#include <stdio.h>
#include <stdlib.h>

#include "smi.h"

int driver_major(const struct sim_board *board)
{
    return atoi(board->driver);
}

int first_of_card(const struct sim_board *board, int place)
{
    for (int i = 0; i < place; i++)
        if (board->dies[i].npu_id == board->dies[place].npu_id)
            return 0;
    return 1;
}

void show_list(const struct sim_board *board)
{
    int cards = 0;

    for (int i = 0; i < board->count; i++)
        cards += first_of_card(board, i);
    field("Total Count", "%d", cards);
    putchar('\n');
    for (int i = 0; i < board->count; i++)
        if (first_of_card(board, i)) {
            field("NPU ID", "%d", board->dies[i].npu_id);
            field("Chip Count", "%d", board->dies[i].chips);
            putchar('\n');
        }
}

static void row(const char *const cells[], int count)
{
    putchar('\t');
    for (int i = 0; i < count; i++)
        printf("%-30s%s", cells[i], i + 1 < count ? " " : "\n");
}

static void die_row(const struct sim_board *board, const struct sim_die *die)
{
    char npu[12], slot[12], chip[12], logic[12], phy[12], name[48];
    const char *const a2[] = {npu, chip, logic, name}, *const a3[] = {npu, chip, logic, phy, name},
                      *const a5[] = {npu, slot, chip, phy, name};
    int spelled_out = board->layout == LAYOUT_A2 || board->layout == LAYOUT_310P;

    snprintf(npu, sizeof npu, "%d", die->npu_id);
    snprintf(slot, sizeof slot, "%d", die->npu_id + 1);
    snprintf(chip, sizeof chip, "%d", die->chip_id);
    snprintf(logic, sizeof logic, "%d", die->logic_id);
    snprintf(phy, sizeof phy, "%d", die->phy_id);
    snprintf(name, sizeof name, "%s%s", spelled_out ? "Ascend " : "", die->chip);
    row(board->layout == LAYOUT_A5 ? a5 : board->layout == LAYOUT_A3 ? a3 : a2, spelled_out ? 4 : 5);
}

/* The card's management controller: a chip of its own, which has no logic id. */
static void mcu_row(const struct sim_board *board, const struct sim_die *die)
{
    char npu[12], chip[12];
    const char *const a2[] = {npu, chip, "-", "Mcu"}, *const a3[] = {npu, chip, "-", "-", "Mcu"};

    snprintf(npu, sizeof npu, "%d", die->npu_id);
    snprintf(chip, sizeof chip, "%d", die->chips);
    row(board->layout == LAYOUT_A3 ? a3 : a2, board->layout == LAYOUT_A3 ? 5 : 4);
}

void show_map(const struct sim_board *board)
{
    static const char *const a2[] = {"NPU ID", "Chip ID", "Chip Logic ID", "Chip Name"},
                             *const a3[] = {"NPU ID", "Chip ID", "Chip Logic ID", "Chip Phy-ID", "Chip Name"},
                             *const a5[] = {"NPU ID", "Slot ID", "Chip ID", "Chip Phy-ID", "Chip Name"};
    int wide = board->layout == LAYOUT_A3 || board->layout == LAYOUT_A5;

    row(board->layout == LAYOUT_A5 ? a5 : wide ? a3 : a2, wide ? 5 : 4);
    for (int i = 0; i < board->count; i++) {
        int last = i + 1 == board->count || board->dies[i + 1].npu_id != board->dies[i].npu_id;

        die_row(board, &board->dies[i]);
        if (last && board->layout != LAYOUT_A5)
            mcu_row(board, &board->dies[i]);
    }
}
