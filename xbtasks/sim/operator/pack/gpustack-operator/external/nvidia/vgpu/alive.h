#ifndef VGPU_ALIVE_H
#define VGPU_ALIVE_H

/* Whether a process of this process's namespace still runs; one that ended and wasn't waited for yet doesn't. */
int vgpu_alive(int pid);

#endif
