/* npu-smi info -t board: what a card and its chips are. */
#include <stdio.h>

#include "smi.h"

static void card_a5(const struct sim_board *board, const struct sim_die *die)
{
    field("NPU ID", "%d", die->npu_id);
    field("Product Name", "NA");
    field("NPU Name", "%s", die->npu);
    field("Chip Name", "%s", die->chip);
    field("Chip Version", "V100");
    field("Model", "NA");
    field("Manufacturer", "Huawei");
    field("Serial Number", "NA");
    field("Software Version", "%s", board->driver);
    field("Firmware Version", "%s", board->firmware);
    field("Compatibility", "OK");
    field("Board ID", "0x1b");
    field("Main Board ID", "0x68(1P)");
    field("PCB ID", "A");
    field("BOM ID", "1");
    field("PCIe Bus Info", "%s", die->bus);
    field("Slot ID", "%d", die->npu_id + 1);
    field("Class ID", "NA");
    field("PCI Vendor ID", "0x19E5");
    field("PCI Device ID", "0xD806");
    field("Subsystem Vendor ID", "0x19E5");
    field("Subsystem Device ID", "0x4004");
    field("Chip Count", "%d", die->chips);
    field("DDie Count", "1");
    field("DDie ID", "%s", die->die_id);
    field("Chip Position ID", "%d", die->chip_id);
}

static void card(const struct sim_board *board, const struct sim_die *die)
{
    field("NPU ID", "%d", die->npu_id);
    field("Product Name", "NA");
    field("Model", "NA");
    field("Manufacturer", "Huawei");
    field("Serial Number", "NA");
    field("Software Version", "%s", board->driver);
    field("Firmware Version", "%s", board->firmware);
    field("Compatibility", "OK");
    field("Board ID", board->layout == LAYOUT_310P ? "0x64" : "0x60");
    field("PCB ID", "A");
    field("BOM ID", "1");
    field("PCIe Bus Info", "%s", die->bus);
    field("Slot ID", "%d", die->npu_id);
    field("Class ID", "NA");
    field("PCI Vendor ID", "0x19E5");
    field("PCI Device ID", board->layout == LAYOUT_310P ? "0xD500" : "0xD802");
    field("Subsystem Vendor ID", "0x19E5");
    field("Subsystem Device ID", "0x3003");
    field("Chip Count", "%d", die->chips);
}

/* The 310P names its one die id otherwise than the chips that have two; A3 has no chip type but a name. */
static void chip(const struct sim_board *board, const struct sim_die *die)
{
    int is_310p = board->layout == LAYOUT_310P, is_a3 = board->layout == LAYOUT_A3;

    field("NPU ID", "%d", die->npu_id);
    if (is_a3)
        field("NPU Name", "%s", die->npu);
    field("Chip ID", "%d", die->chip_id);
    if (!is_a3)
        field("Chip Type", "Ascend");
    field("Chip Name", "%s", die->chip);
    field("Chip Version", "V1");
    field("Board ID", is_310p ? "0x64" : is_a3 ? "0xb0" : "0x02");
    if (!is_310p) {
        field("PCB ID", "NA");
        field("BOM ID", "1");
        field("VDie ID", "%s", die->die_id);
        field("NDie ID", "%s", die->ndie_id);
    } else {
        field("Die ID", "%s", die->die_id);
    }
    field("Chip Position ID", "%d", die->chip_id);
    field("PCIe Bus Info", "%s", die->bus);
    field("Firmware Version", "%s", board->firmware);
}

void show_board(const struct sim_board *board, const struct request *request)
{
    int whole = request->chip < 0 || board->layout == LAYOUT_A5, at = 0;

    while (board->dies[at].npu_id != request->card)
        at++;
    if (!whole)
        chip(board, sim_by_card(board, request->card, request->chip));
    else if (board->layout == LAYOUT_A5)
        card_a5(board, &board->dies[at]);
    else
        card(board, &board->dies[at]);
}
