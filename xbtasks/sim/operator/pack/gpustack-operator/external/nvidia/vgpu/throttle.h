/* Compute limits: launches are held back so that the device is busy with this container no longer than allowed. */
#ifndef VGPU_THROTTLE_H
#define VGPU_THROTTLE_H

#include <stdint.h>

/* Says each device's limit, and starts holding launches back where there is one. Without the host's number for this
 * process nobody can tell how busy it keeps a device: then nothing is held back. */
void vgpu_throttle_start(int host_pid_known);

/* Holds nothing back any more: in a child, which has no watching thread. */
void vgpu_throttle_stop(void);

/* Waits until the current device may get so many more blocks. */
void vgpu_throttle(uint64_t blocks);

#endif
