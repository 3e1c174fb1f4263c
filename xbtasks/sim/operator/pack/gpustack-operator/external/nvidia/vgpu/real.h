/* The real functions behind the hooks. */
#ifndef VGPU_REAL_H
#define VGPU_REAL_H

/* The C library's own dlsym; this library's dlsym stands before it. */
void *vgpu_libc_dlsym(void *handle, const char *name);

/* The driver's function of that name, or a function that returns the API's "not found". */
void *vgpu_cuda_function(const char *name);
void *vgpu_nvml_function(const char *name);

/* A function that is looked up once for each place that calls it. */
void *vgpu_once(void *_Atomic *place, void *(*look_up)(const char *), const char *name);

#define CUDA(name) VGPU_ONCE(vgpu_cuda_function, name)
#define NVML(name) VGPU_ONCE(vgpu_nvml_function, name)
#define VGPU_ONCE(look_up, name)                                   \
    ((__typeof__(&name))({                                         \
        static void *_Atomic place_;                               \
        vgpu_once(&place_, look_up, #name);                        \
    }))

#endif
