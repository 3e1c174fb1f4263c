/* What the library and the monitor both do to know their virtual NPU. */
#include "vnpu.h"

#include "log.h"

int vnpu_configure(struct vnpu *vnpu)
{
    if (config_load(VNPU_CONFIG, &vnpu->config) != 0) {
        LOG_ERROR("Failed to initialize npu manager.");
        return 1;
    }
    vnpu->memory_quota = (size_t)vnpu->config.memory_quota * VNPU_MEBIBYTE;
    LOG_INFO("Successfully to initialize vnpu device.");
    return 0;
}

int vnpu_find_device(struct vnpu *vnpu, enum soc soc)
{
    int code = dcmi_find(soc, (unsigned int)vnpu->config.physical_npu_id, &vnpu->device);

    if (code != 0)
        LOG_ERROR("Failed to get card info, err:%d npu:%d", code, vnpu->config.physical_npu_id);
    return code;
}
