/* nvidia-smi's views of the cards. Layouts: nvidia-smi(1). */
#ifndef SIM_SMI_H
#define SIM_SMI_H

#include "calls.h"

enum { SMI_CARDS = 32, SMI_PROCESSES = 128 };

/* A number that a card may not report, and why not. */
struct reading {
    nvmlReturn_t result;
    unsigned long long value;
};

struct smi_card {
    unsigned int index;
    nvmlDevice_t device;
    nvmlReturn_t handle; /* a card that is lost has none */
    char name[96], uuid[96], bus[32];
    int major, minor, persistence, compute_mode, display;
    struct reading total, used, available, reserved, load, power, power_limit, temperature, state, mig, mig_pending;
};

struct smi {
    struct calls calls;
    char driver[80];
    int cuda;
    unsigned int count;
    struct smi_card cards[SMI_CARDS];
};

/* Fills a card in; the index is set. */
void card_read(struct smi *smi, struct smi_card *card);

/* Whether "-i" chose the card: NULL, an index, a UUID or a bus id. */
int card_chosen(const struct smi_card *card, const char *wanted);

/* The views; each returns the exit status. */
int show_table(struct smi *smi, const char *wanted);
int show_list(struct smi *smi, const char *wanted);

struct format {
    int header, units;
};

/* "csv" with ",noheader" and ",nounits"; tells whether it is that. */
int format_parse(const char *text, struct format *format);
int query_cards(struct smi *smi, const char *fields, struct format format, const char *wanted);
int query_processes(struct smi *smi, const char *fields, struct format format, const char *wanted);

enum smi_exit {
    EXIT_INVALID = 2,
    EXIT_NO_DEVICE = 6,
    EXIT_NO_DRIVER = 9,
    EXIT_NO_LIBRARY = 12,
    EXIT_LOST = 15,
    EXIT_MISMATCH = 18,
    EXIT_UNKNOWN = 255,
};

#endif
