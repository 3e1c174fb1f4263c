#ifndef VGPU_UTILIZATION_H
#define VGPU_UTILIZATION_H

/* How busy the processes that share the cache keep a device, in percent; tells whether the device says. */
int vgpu_utilization(int device, unsigned int *percent);

#endif
