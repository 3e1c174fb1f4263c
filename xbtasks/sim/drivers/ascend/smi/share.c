/* npu-smi info and set -t device-share: whether several containers may use a chip at the same time. */
#include <stdio.h>

#include "smi.h"

static int wanted(const struct sim_die *die, const struct request *request)
{
    return (request->card < 0 || die->npu_id == request->card) &&
           (request->chip < 0 || die->chip_id == request->chip);
}

static void show_state(const struct sim_die *die)
{
    uint64_t shared;

    node_tell(&shared, "ascend\tshare\t%d", die->phy_id);
    field("Device-share Status", shared ? "True" : "False");
}

int show_share(const struct sim_board *board, const struct request *request)
{
    for (int i = 0; i < board->count; i++) {
        const struct sim_die *die = &board->dies[i];

        if (!wanted(die, request))
            continue;
        if (request->chip >= 0) {
            show_state(die);
            continue;
        }
        if (first_of_card(board, i)) {
            field("NPU ID", "%d", die->npu_id);
            field("Chip Count", "%d", die->chips);
            putchar('\n');
        }
        show_state(die);
        field("Chip ID", "%d", die->chip_id);
        putchar('\n');
    }
    return NPU_OK;
}

static int confirmed(void)
{
    int answer;

    puts("There are security risks when opening device sharing, Please ensure that only a single user uses the "
         "chip.\nAre you sure you want to continue setting?(Y/N)");
    fflush(stdout);
    answer = getchar();
    return answer == 'Y' || answer == 'y';
}

int set_share(const struct sim_board *board, const struct request *request)
{
    int code = NPU_OK;

    if (request->value != 0 && request->value != 1) {
        puts("Must input parameter of -d.");
        return NPU_ERR_CODE_INVALID_PARAMETER;
    }
    if (request->value == 1 && !confirmed())
        return NPU_OK;
    for (int i = 0; i < board->count; i++)
        if (wanted(&board->dies[i], request) &&
            (int)node_tell(NULL, "ascend\tshare\t%d\t%d", board->dies[i].phy_id, request->value) != NODE_OK)
            code = NPU_ERR_CODE_OPER_NOT_PERMITTED;
    field("Status", code == NPU_OK ? "OK" : "Fail");
    if (code != NPU_OK)
        field("Message", "Operation not permitted.");
    else
        field("Message", "The device-share%s is set successfully.", request->chip < 0 ? "" : " of the chip");
    return code;
}
