#include "board.h"

#include <stdio.h>

enum { BOARD_FIELDS = 7, DIE_FIELDS = 12, DIE_TEXTS = 6 };

static void fill(struct sim_die *die, const struct node_answer *answer, int first)
{
    const struct {
        char *text;
        size_t size;
    } texts[DIE_TEXTS] = {
        {die->chip, sizeof die->chip},       {die->npu, sizeof die->npu}, {die->die_id, sizeof die->die_id},
        {die->ndie_id, sizeof die->ndie_id}, {die->bus, sizeof die->bus}, {die->health, sizeof die->health},
    };
    int *const numbers[] = {&die->npu_id, &die->chip_id, &die->chips, &die->logic_id, &die->phy_id};
    int field = first;

    for (int i = 0; i < DIE_TEXTS; i++)
        snprintf(texts[i].text, texts[i].size, "%s", node_text(answer, field++));
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        *numbers[i] = (int)node_number(answer, field++);
    die->memory = node_number(answer, field);
}

void sim_look(struct sim_board *board)
{
    struct node_answer answer;

    board->count = board->known = 0;
    if (node_ask(&answer, "ascend\thello") != NODE_OK) {
        board->fault = FAULT_NOT_LOADED;
        return;
    }
    board->fault = (enum sim_fault)node_number(&answer, 0);
    snprintf(board->driver, sizeof board->driver, "%s", node_text(&answer, 1));
    snprintf(board->firmware, sizeof board->firmware, "%s", node_text(&answer, 2));
    board->layout = (enum sim_layout)node_number(&answer, 3);
    snprintf(board->soc, sizeof board->soc, "%s", node_text(&answer, 4));
    board->count = (int)node_number(&answer, 5);
    board->known = (int)node_number(&answer, 6);
    if (board->count > SIM_DIES || board->known > SIM_DIES)
        board->count = board->known = SIM_DIES;
    for (int i = 0; i < board->known; i++)
        fill(&board->dies[i], &answer, BOARD_FIELDS + i * DIE_FIELDS);
}

const struct sim_die *sim_by_phy_id(const struct sim_board *board, unsigned int phy_id)
{
    for (int i = 0; i < board->known; i++)
        if ((unsigned int)board->dies[i].phy_id == phy_id)
            return &board->dies[i];
    return NULL;
}

const struct sim_die *sim_by_card(const struct sim_board *board, int npu_id, int chip_id)
{
    for (int i = 0; i < board->known; i++)
        if (board->dies[i].npu_id == npu_id && board->dies[i].chip_id == chip_id)
            return &board->dies[i];
    return NULL;
}
