/* The limits that the environment asks for. */
#ifndef VGPU_LIMITS_H
#define VGPU_LIMITS_H

#include <stdint.h>

enum { VGPU_DEVICES = 16 };

struct vgpu_limits {
    uint64_t memory[VGPU_DEVICES]; /* bytes; 0: none */
    uint64_t compute[VGPU_DEVICES]; /* percent; 100 and more: none */
};

/* Reads CUDA_DEVICE_MEMORY_LIMIT[_i] and CUDA_DEVICE_SM_LIMIT[_i]; says what is wrong with them. */
void vgpu_read_limits(struct vgpu_limits *limits);

#endif
