/* Reads the command line, as npu-smi does: `info` or `set` and options in any order. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "smi.h"

enum { DCMI_ERR_CODE_INNER_ERR = -8005, DCMI_ERR_CODE_RESOURCE_OCCUPIED = -8020 };

void field(const char *label, const char *format, ...)
{
    va_list values;

    printf("\t%-30s : ", label);
    va_start(values, format);
    vprintf(format, values);
    va_end(values);
    putchar('\n');
}

static int start(struct sim_board *board)
{
    sim_look(board);
    if (board->fault == FAULT_NOT_LOADED) {
        printf("DrvMngGetConsoleLogLevel failed. (ret=4)\ndcmi module initialize failed. ret is %d\n",
               DCMI_ERR_CODE_INNER_ERR);
        return DCMI_ERR_CODE_INNER_ERR;
    }
    if ((int)node_tell(NULL, "ascend\tstart") == NODE_BUSY) {
        printf("DrvMngGetConsoleLogLevel failed. (g_conLogLevel=3)\n"
               "dcmi model initialized failed, because the device is used. ret is %d\n",
               DCMI_ERR_CODE_RESOURCE_OCCUPIED);
        return DCMI_ERR_CODE_RESOURCE_OCCUPIED;
    }
    if (board->fault == FAULT_BOARD_TYPE) {
        printf("npu get board type failed. ret is %d\n", NPU_ERR_CODE_INNER_ERR);
        return NPU_ERR_CODE_INNER_ERR;
    }
    return NPU_OK;
}

static int number(const char *text, int *value)
{
    char *end;
    long parsed = strtol(text, &end, 10);

    *value = (int)parsed;
    return end != text && *end == '\0' && parsed >= 0 && parsed <= 1 << 20 ? 0 : -1;
}

static int bad_option(const char *text)
{
    printf("Invalid parameter : %s\n", text);
    return NPU_ERR_CODE_INVALID_PARAMETER;
}

static int read_options(int count, char **arguments, struct request *request)
{
    for (int i = 0; i < count; i++) {
        const char *option = arguments[i], *value = i + 1 < count ? arguments[i + 1] : "";
        int *place = strcmp(option, "-i") == 0   ? &request->card
                     : strcmp(option, "-c") == 0 ? &request->chip
                     : strcmp(option, "-d") == 0 ? &request->value
                                                 : NULL;

        if (strcmp(option, "-l") == 0)
            request->list = 1;
        else if (strcmp(option, "-m") == 0)
            request->map = 1;
        else if (strcmp(option, "-t") == 0 && *value != '\0')
            request->type = arguments[++i];
        else if (place == NULL || number(value, place) != 0)
            return bad_option(option);
        else
            i++;
    }
    return NPU_OK;
}

/* Whether the card, and the chip if one is named, is there. */
static int check_place(const struct sim_board *board, const struct request *request)
{
    int found = 0;

    for (int i = 0; i < board->known; i++)
        found |= board->dies[i].npu_id == request->card;
    if (!found) {
        puts("Invalid card id.");
        return NPU_ERR_CODE_INVALID_PARAMETER;
    }
    if (request->chip >= 0 && sim_by_card(board, request->card, request->chip) == NULL) {
        puts("Invalid chip id.");
        return NPU_ERR_CODE_INVALID_PARAMETER;
    }
    return NPU_OK;
}

static int info_type(const struct sim_board *board, const struct request *request)
{
    int code = request->card < 0 ? NPU_OK : check_place(board, request);

    if (code != NPU_OK)
        return code;
    if (strcmp(request->type, "device-share") == 0)
        return show_share(board, request);
    if (request->card < 0) {
        puts("Must input parameter of card id.");
        return NPU_ERR_CODE_INVALID_PARAMETER;
    }
    if (strcmp(request->type, "board") == 0)
        show_board(board, request);
    else if (strcmp(request->type, "usages") == 0)
        show_usages(board, request);
    else
        return bad_option(request->type);
    return NPU_OK;
}

static int info(const struct sim_board *board, const struct request *request)
{
    if (request->type != NULL)
        return info_type(board, request);
    if (request->list)
        show_list(board);
    else if (request->map)
        show_map(board);
    else
        show_table(board);
    return NPU_OK;
}

static int set(const struct sim_board *board, const struct request *request)
{
    int code;

    if (request->type == NULL || strcmp(request->type, "device-share") != 0)
        return bad_option(request->type == NULL ? "set" : request->type);
    code = check_place(board, request);
    return code == NPU_OK ? set_share(board, request) : code;
}

int main(int count, char **arguments)
{
    struct request request = {.card = -1, .chip = -1, .value = -1};
    struct sim_board board;
    int is_info = count > 1 && strcmp(arguments[1], "info") == 0, code;

    if (!is_info && (count < 2 || strcmp(arguments[1], "set") != 0)) {
        puts("Usage: npu-smi info|set [option...]");
        return NPU_ERR_CODE_INVALID_PARAMETER;
    }
    code = read_options(count - 2, arguments + 2, &request);
    if (code == NPU_OK)
        code = start(&board);
    if (code == NPU_OK)
        code = is_info ? info(&board, &request) : set(&board, &request);
    return code; /* the shell sees it modulo 256 */
}
