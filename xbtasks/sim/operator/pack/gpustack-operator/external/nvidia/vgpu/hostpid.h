#ifndef VGPU_HOSTPID_H
#define VGPU_HOSTPID_H

/* Finds out the number that the host has for this process, and what a primary context costs; tells whether it could. */
int vgpu_find_host_pid(void);

#endif
