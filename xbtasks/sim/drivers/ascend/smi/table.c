/* npu-smi info: the table of chips and of the processes that use them. */
#include <stdio.h>
#include <string.h>

#include "smi.h"

/* The lines that a layout is made of. `thin` parts the chips of a card, `thick` the cards. `version` is how wide the
 * tool's version is. */
struct table {
    const char *thin, *columns, *thick, *upper_head, *lower_head;
    int version;
};

/* A3 since driver 26. */
enum { TABLE_A3_WIDE = LAYOUT_A5 + 1, TABLES, WIDE_SINCE = 26 };

#define TIMES_4(text) text text text text
#define LINE_27 TIMES_4("------") "---"
#define BAR_27 TIMES_4("======") "==="
#define LINE_52 TIMES_4("-------------")
#define BAR_52 TIMES_4("=============")

static const struct table tables[TABLES] = {
    [LAYOUT_A2] =
        {
            "+" LINE_27 "-" LINE_52 "----------------+\n",
            "+" LINE_27 "+---------------+" LINE_52 "+\n",
            "+" BAR_27 "+===============+" BAR_52 "+\n",
            "| NPU   Name                | Health        | Power(W)    Temp(C)           Hugepages-Usage(page)|\n",
            "| Chip                      | Bus-Id        | AICore(%)   Memory-Usage(MB)  HBM-Usage(MB)        |\n",
            24,
        },
    [LAYOUT_A3] =
        {
            "+" LINE_27 "-" LINE_52 "----------------+\n",
            "+" LINE_27 "+---------------+" LINE_52 "+\n",
            "+" BAR_27 "+===============+" BAR_52 "+\n",
            "| NPU   Name                | Health        | Power(W)    Temp(C)           Hugepages-Usage(page)|\n",
            "| Chip  Phy-ID              | Bus-Id        | AICore(%)   Memory-Usage(MB)  HBM-Usage(MB)        |\n",
            24,
        },
    [LAYOUT_310P] =
        {
            "+-------------------------------+-----------------+" LINE_52 "--+\n",
            "+-------------------------------+-----------------+" LINE_52 "--+\n",
            "+===============================+=================+" BAR_52 "==+\n",
            "| NPU     Name                  | Health          | Power(W)     Temp(C)           "
            "Hugepages-Usage(page) |\n",
            "| Chip    Device                | Bus-Id          | AICore(%)    Memory-Usage(MB)                    "
            "    |\n",
            40,
        },
    [LAYOUT_A5] =
        {
            "+--------+------------------+---------------+" LINE_52 "-+\n",
            "+--------+------------------+---------------+" LINE_52 "-+\n",
            "+========+==================+===============+" BAR_52 "=+\n",
            "| NPU ID | Name             | Health        | Power(W)    Temp(C)           Hugepages-Usage(page) |\n",
            "|        |                  | Bus-Id        | NPU Util(%) Memory-Usage(MB)  HBM-Usage(MB)         |\n",
            40,
        },
    [TABLE_A3_WIDE] =
        {
            "+" LINE_27 "-" LINE_52 "----------------------------------+\n",
            "+" LINE_27 "+---------------+" LINE_52 "------------------+\n",
            "+" BAR_27 "+===============+" BAR_52 "==================+\n",
            "| NPU   Name                | Health        | Power(W)             Temp(C)                 "
            "Hugepages-Usage(page)   |\n",
            "| Chip  Phy-ID              | Bus-Id        | AICore(%)            Memory-Usage(MB)        HBM-Usage(MB) "
            "          |\n",
            35,
        },
};

static int table_of(const struct sim_board *board)
{
    return board->layout == LAYOUT_A3 && driver_major(board) >= WIDE_SINCE ? TABLE_A3_WIDE : (int)board->layout;
}

/* A card's power is its first chip's; the 310P doesn't measure it. */
static void power(char *text, size_t size, const struct sim_board *board, const struct sim_die *die)
{
    if (board->layout == LAYOUT_310P)
        snprintf(text, size, "NA");
    else if (die->chip_id > 0)
        snprintf(text, size, "-");
    else
        snprintf(text, size, "%d.%d", 85 + die->npu_id, 9 - die->npu_id % 10);
}

static void rows(const struct sim_board *board, const struct sim_die *die)
{
    unsigned int load = core_load(die), used = used_mib(die), capacity = memory_mib(die);
    int celsius = 38 + die->phy_id;
    char watts[16], place[16] = "";

    power(watts, sizeof watts, board, die);
    if (board->layout == LAYOUT_A3 || board->layout == LAYOUT_310P)
        snprintf(place, sizeof place, "%d", die->phy_id);
    switch (table_of(board)) {
    case TABLE_A3_WIDE:
        printf("| %-5d %-19s | %-13s | %-20s %-23d 0    / 0                |\n", die->npu_id, die->chip, die->health,
               watts, celsius);
        printf("| %-5d %-19s | %-13s | %-20u 0    / 0                %-5u/ %-16u |\n", die->chip_id, place, die->bus,
               load, used, capacity);
        break;
    case LAYOUT_310P:
        printf("| %-7d %-21s | %-15s | %-12s %-17d 0     / 0             |\n", die->npu_id, die->chip, die->health,
               watts, celsius);
        printf("| %-7d %-21s | %-15s | %-12u %-5u/ %-32u |\n", die->chip_id, place, die->bus, load, used, capacity);
        break;
    case LAYOUT_A5:
        printf("| %-6d | %-16s | %-13s | %-11s %-17d 0     / 0             |\n", die->npu_id, die->chip, die->health,
               watts, celsius);
        printf("| %-6s | %-16s | %-13s | %-11u 0    / 0          %-6u/ %-13u |\n", "", "", die->bus, load, used,
               capacity);
        break;
    default:
        printf("| %-5d %-19s | %-13s | %-11s %-17d 0    / 0             |\n", die->npu_id, die->chip, die->health,
               watts, celsius);
        printf("| %-5d %-19s | %-13s | %-11u 0    / 0          %-5u/ %-13u |\n", die->chip_id, place, die->bus, load,
               used, capacity);
    }
}

void show_table(const struct sim_board *board)
{
    const struct table *table = &tables[table_of(board)];
    int width = (int)strlen(table->columns) - 1;

    printf("+%.*s+\n", width - 2, TIMES_4(LINE_52));
    printf("| npu-smi %-*s Version: %-*s|\n", table->version, board->driver, width - table->version - 21,
           board->driver);
    printf("%s%s%s%s", table->columns, table->upper_head, table->lower_head, table->thick);
    for (int i = 0; i < board->count; i++) {
        int last = i + 1 == board->count || board->dies[i + 1].npu_id != board->dies[i].npu_id;

        rows(board, &board->dies[i]);
        fputs(last ? table->thick : table->thin, stdout);
    }
    show_processes(board, table->thick, width);
}
