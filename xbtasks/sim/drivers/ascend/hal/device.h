/* Devices are counted from 0 within a container, whatever their physical ids are. */
#ifndef SIM_HAL_DEVICE_H
#define SIM_HAL_DEVICE_H

#include "hal.h"

/* Stores the physical id of a device. */
drvError_t hal_phy_id(uint32_t device, int *phy_id);

/* The driver's code for how a question to the node went. */
drvError_t hal_code(int status);

#endif
