#include "query.h"

#include <stdatomic.h>

static atomic_bool started;

int query_code(int status)
{
    switch (status) {
    case NODE_OK:
        return DCMI_OK;
    case NODE_NO_CARD:
    case NODE_INVALID:
        return DCMI_ERR_CODE_INVALID_PARAMETER;
    case NODE_BUSY:
        return DCMI_ERR_CODE_RESOURCE_OCCUPIED;
    case NODE_DENIED:
        return DCMI_ERR_CODE_OPER_NOT_PERMITTED;
    default:
        return DCMI_ERR_CODE_INNER_ERR;
    }
}

int query_start(void)
{
    struct sim_board board;
    int code;

    sim_look(&board);
    if (board.fault == FAULT_NOT_LOADED)
        return DCMI_ERR_CODE_INNER_ERR;
    code = query_code((int)node_tell(NULL, "ascend\tstart"));
    if (code == DCMI_OK)
        started = 1;
    return code;
}

int query_board(struct sim_board *board)
{
    if (!started)
        return DCMI_ERR_CODE_NOT_READY;
    sim_look(board);
    return board->fault == FAULT_NOT_LOADED ? DCMI_ERR_CODE_INNER_ERR : DCMI_OK;
}

/* The caller's array has room for DCMI_MOST_PROCESSES; of more, only the number is told. */
int query_processes(int phy_id, struct dcmi_proc_mem_info *processes, int *count)
{
    struct node_answer answer;
    int code = query_code((int)node_ask(&answer, "ascend\tprocesses\t%d", phy_id));

    if (code != DCMI_OK)
        return code;
    *count = answer.count / 2;
    for (int i = 0; i < *count && i < DCMI_MOST_PROCESSES; i++) {
        processes[i].proc_id = (int)node_number(&answer, 2 * i);
        processes[i].proc_mem_usage = node_number(&answer, 2 * i + 1);
    }
    return DCMI_OK;
}

static int memory_rate(int phy_id, uint64_t memory, unsigned int *rate)
{
    uint64_t used;
    int code = query_code((int)node_tell(&used, "ascend\tmemory\t%d", phy_id));

    if (code == DCMI_OK)
        *rate = (unsigned int)(100 * used / memory);
    return code;
}

int query_utilization(const struct sim_board *board, int phy_id, int kind, unsigned int *rate)
{
    const struct sim_die *die = sim_by_phy_id(board, (unsigned int)phy_id);
    uint64_t load;
    int code;

    if (kind == DCMI_UTILIZATION_NPU && board->layout == LAYOUT_310P)
        return DCMI_ERR_CODE_NOT_SUPPORT;
    if (kind == DCMI_UTILIZATION_HBM && die != NULL)
        return memory_rate(phy_id, die->memory, rate);
    if (kind != DCMI_UTILIZATION_AICORE && kind != DCMI_UTILIZATION_NPU)
        return DCMI_ERR_CODE_INVALID_PARAMETER;
    code = query_code((int)node_tell(&load, "ascend\tload\t%d", phy_id));
    if (code == DCMI_OK)
        *rate = (unsigned int)load;
    return code;
}
