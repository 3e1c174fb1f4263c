#include "device.h"

#include <stdio.h>

#include "board.h"

drvError_t hal_code(int status)
{
    switch (status) {
    case NODE_OK:
        return DRV_ERROR_NONE;
    case NODE_NO_MEMORY:
        return DRV_ERROR_OUT_OF_MEMORY;
    case NODE_BUSY:
        return DRV_ERROR_RESOURCE_OCCUPIED;
    case NODE_INVALID:
        return DRV_ERROR_INVALID_VALUE;
    case NODE_ABSENT:
        return DRV_ERROR_NO_DEVICE;
    default:
        return DRV_ERROR_INVALID_DEVICE;
    }
}

static drvError_t look(struct sim_board *board)
{
    sim_look(board);
    return board->fault == FAULT_NOT_LOADED || board->count == 0 ? DRV_ERROR_NO_DEVICE : DRV_ERROR_NONE;
}

drvError_t hal_phy_id(uint32_t device, int *phy_id)
{
    struct sim_board board;
    drvError_t failed = look(&board);

    if (failed)
        return failed;
    if (device >= (uint32_t)board.count)
        return DRV_ERROR_INVALID_DEVICE;
    *phy_id = board.dies[device].phy_id;
    return DRV_ERROR_NONE;
}

drvError_t drvGetDevNum(uint32_t *count)
{
    struct sim_board board;
    drvError_t failed = look(&board);

    *count = (uint32_t)board.count;
    return failed;
}

drvError_t halGetSocVersion(uint32_t device, char *name, uint32_t size)
{
    struct sim_board board;
    drvError_t failed = look(&board);

    if (failed)
        return failed;
    if (device >= (uint32_t)board.count)
        return DRV_ERROR_INVALID_DEVICE;
    return (uint32_t)snprintf(name, size, "%s", board.soc) < size ? DRV_ERROR_NONE : DRV_ERROR_INVALID_VALUE;
}

drvError_t drvDeviceOpen(uint32_t device)
{
    int phy_id;
    drvError_t failed = hal_phy_id(device, &phy_id);

    return failed ? failed : hal_code((int)node_tell(NULL, "ascend\tenter\t%d", phy_id));
}

drvError_t drvDeviceClose(uint32_t device)
{
    int phy_id;
    drvError_t failed = hal_phy_id(device, &phy_id);

    return failed ? failed : hal_code((int)node_tell(NULL, "ascend\tleave\t%d", phy_id));
}

drvError_t halMemGetInfo(uint32_t device, struct hal_memory *memory)
{
    struct node_answer answer;
    int phy_id;
    drvError_t failed = hal_phy_id(device, &phy_id);

    if (!failed)
        failed = hal_code((int)node_ask(&answer, "ascend\tmemory\t%d", phy_id));
    if (failed)
        return failed;
    memory->total = node_number(&answer, 1);
    memory->available = node_number(&answer, 2);
    return DRV_ERROR_NONE;
}

drvError_t halSqTaskSend(uint32_t device, uint64_t nanoseconds, uint64_t *end)
{
    int phy_id;
    drvError_t failed = hal_phy_id(device, &phy_id);

    if (failed)
        return failed;
    return hal_code((int)node_tell(end, "ascend\trun\t%d\t%llu", phy_id, (unsigned long long)nanoseconds));
}
