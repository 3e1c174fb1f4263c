/* The second series of calls. Only the 950 generation has it. */
#include <stddef.h>

#include "query.h"

static int supported(struct sim_board *board)
{
    int code = query_board(board);

    return code == DCMI_OK && board->layout != LAYOUT_A5 ? DCMI_ERR_CODE_NOT_SUPPORT : code;
}

static int find(struct sim_board *board, int device, int *phy_id)
{
    int code = supported(board);

    if (code != DCMI_OK)
        return code;
    for (int i = 0; i < board->count; i++)
        if (board->dies[i].logic_id == device) {
            *phy_id = board->dies[i].phy_id;
            return DCMI_OK;
        }
    return DCMI_ERR_CODE_INVALID_PARAMETER;
}

int dcmiv2_init(void)
{
    struct sim_board board;
    int code = query_start();

    return code == DCMI_OK ? supported(&board) : code;
}

int dcmiv2_get_device_list(int *devices, int *count, int capacity)
{
    struct sim_board board;
    int code = supported(&board);

    if (code != DCMI_OK)
        return code;
    if (devices == NULL || count == NULL || capacity < board.count)
        return DCMI_ERR_CODE_INVALID_PARAMETER;
    for (int i = 0; i < board.count; i++)
        devices[i] = board.dies[i].logic_id;
    *count = board.count;
    return DCMI_OK;
}

int dcmiv2_get_device_utilization_rate(int device, int kind, unsigned int *rate)
{
    struct sim_board board;
    int phy_id, code = find(&board, device, &phy_id);

    if (code != DCMI_OK)
        return code;
    return rate == NULL ? DCMI_ERR_CODE_INVALID_PARAMETER : query_utilization(&board, phy_id, kind, rate);
}

int dcmiv2_get_device_proc_mem_info(int device, struct dcmi_proc_mem_info *processes, int *count)
{
    struct sim_board board;
    int phy_id, code = find(&board, device, &phy_id);

    if (code != DCMI_OK)
        return code;
    if (processes == NULL || count == NULL)
        return DCMI_ERR_CODE_INVALID_PARAMETER;
    return query_processes(phy_id, processes, count);
}
