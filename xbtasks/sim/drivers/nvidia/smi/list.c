/* "-L": one line for each card. */
#include <stdio.h>

#include "smi.h"

int show_list(struct smi *smi, const char *wanted)
{
    for (unsigned int i = 0; i < smi->count; i++) {
        const struct smi_card *card = &smi->cards[i];

        if (card->handle != NVML_SUCCESS)
            printf("GPU %u: Unable to determine the device handle: GPU is lost\n", i);
        else if (card_chosen(card, wanted))
            printf("GPU %u: %s (UUID: %s)\n", i, card->name, card->uuid);
    }
    return 0;
}
