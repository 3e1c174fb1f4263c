#include "cards.h"

#include <stdio.h>

enum { DRIVER_FIELDS = 5, CARD_FIELDS = 18 };

static void fill(struct sim_card *card, const struct node_answer *answer, int first)
{
    uint64_t numbers[CARD_FIELDS - 3];

    for (int i = 0; i < CARD_FIELDS - 3; i++)
        numbers[i] = node_number(answer, first + 3 + i);
    snprintf(card->uuid, sizeof card->uuid, "%s", node_text(answer, first));
    snprintf(card->name, sizeof card->name, "%s", node_text(answer, first + 1));
    snprintf(card->bus, sizeof card->bus, "%s", node_text(answer, first + 2));
    card->index = (unsigned int)numbers[0];
    card->memory = numbers[1];
    card->reserved = numbers[2];
    card->context = numbers[3];
    card->multiprocessors = (int)numbers[4];
    card->threads = (int)numbers[5];
    card->blocks = (int)numbers[6];
    card->major = (int)numbers[7];
    card->minor = (int)numbers[8];
    card->clock_mhz = (int)numbers[9];
    card->power_w = (int)numbers[10];
    card->persistence = (int)numbers[11];
    card->unified = (int)numbers[12];
    card->mig = (int)numbers[13];
    card->lost = (int)numbers[14];
}

void sim_look(struct sim_driver *driver)
{
    struct node_answer answer;

    driver->count = 0;
    if (node_ask(&answer, "hello") != NODE_OK) {
        driver->fault = FAULT_NOT_LOADED;
        return;
    }
    driver->fault = (enum sim_fault)node_number(&answer, 0);
    snprintf(driver->version, sizeof driver->version, "%s", node_text(&answer, 1));
    snprintf(driver->library, sizeof driver->library, "%s", node_text(&answer, 2));
    driver->cuda = (int)node_number(&answer, 3);
    driver->count = (int)node_number(&answer, 4);
    if (driver->count > SIM_CARDS)
        driver->count = SIM_CARDS;
    for (int i = 0; i < driver->count; i++)
        fill(&driver->cards[i], &answer, DRIVER_FIELDS + i * CARD_FIELDS);
}
