/* The first series of calls: a device is named by its card and its place in it. The 950 generation has none but
 * dcmi_init. */
#include <stddef.h>

#include "query.h"

static int supported(struct sim_board *board)
{
    int code = query_board(board);

    return code == DCMI_OK && board->layout == LAYOUT_A5 ? DCMI_ERR_CODE_NOT_SUPPORT : code;
}

/* Stores the physical id of a die. With the inventory's other_cards, one outside of the container is told too. */
static int find(struct sim_board *board, int card, int device, int *phy_id)
{
    const struct sim_die *die;
    int code = supported(board);

    if (code != DCMI_OK)
        return code;
    die = sim_by_card(board, card, device);
    if (die == NULL)
        return DCMI_ERR_CODE_INVALID_PARAMETER;
    *phy_id = die->phy_id;
    return DCMI_OK;
}

int dcmi_init(void)
{
    return query_start();
}

int dcmi_get_card_id_device_id_from_phyid(int *card, int *device, unsigned int phy_id)
{
    struct sim_board board;
    const struct sim_die *die;
    int code = supported(&board);

    if (code != DCMI_OK)
        return code;
    die = sim_by_phy_id(&board, phy_id);
    if (card == NULL || device == NULL || die == NULL)
        return DCMI_ERR_CODE_INVALID_PARAMETER;
    *card = die->npu_id;
    *device = die->chip_id;
    return DCMI_OK;
}

int dcmi_get_card_id_device_id_from_logicid(int *card, int *device, unsigned int logic_id)
{
    struct sim_board board;
    int code = supported(&board);

    if (code != DCMI_OK)
        return code;
    if (card == NULL || device == NULL || logic_id >= (unsigned int)board.count)
        return DCMI_ERR_CODE_INVALID_PARAMETER;
    *card = board.dies[logic_id].npu_id;
    *device = board.dies[logic_id].chip_id;
    return DCMI_OK;
}

int dcmi_get_device_resource_info(int card, int device, struct dcmi_proc_mem_info *processes, int *count)
{
    struct sim_board board;
    int phy_id, code = find(&board, card, device, &phy_id);

    if (code != DCMI_OK)
        return code;
    if (processes == NULL || count == NULL)
        return DCMI_ERR_CODE_INVALID_PARAMETER;
    return query_processes(phy_id, processes, count);
}

int dcmi_get_device_utilization_rate(int card, int device, int kind, unsigned int *rate)
{
    struct sim_board board;
    int phy_id, code = find(&board, card, device, &phy_id);

    if (code != DCMI_OK)
        return code;
    return rate == NULL ? DCMI_ERR_CODE_INVALID_PARAMETER : query_utilization(&board, phy_id, kind, rate);
}

int dcmi_get_device_share_enable(int card, int device, int *enabled)
{
    struct sim_board board;
    uint64_t value;
    int phy_id, code = find(&board, card, device, &phy_id);

    if (code != DCMI_OK)
        return code;
    if (enabled == NULL)
        return DCMI_ERR_CODE_INVALID_PARAMETER;
    code = query_code((int)node_tell(&value, "ascend\tshare\t%d", phy_id));
    if (code == DCMI_OK)
        *enabled = (int)value;
    return code;
}

int dcmi_set_device_share_enable(int card, int device, int enabled)
{
    struct sim_board board;
    int phy_id, code = find(&board, card, device, &phy_id);

    if (code != DCMI_OK)
        return code;
    if (enabled != 0 && enabled != 1)
        return DCMI_ERR_CODE_INVALID_PARAMETER;
    return query_code((int)node_tell(NULL, "ascend\tshare\t%d\t%d", phy_id, enabled));
}
