/* What the parts of the probe share. */
#ifndef PROBE_H
#define PROBE_H

#include <stddef.h>
#include <stdint.h>

/* In place of a result: the library or the function isn't there. */
enum { ABSENT = -32000, CARDS = 32 };

struct text {
    char *start;
    size_t length, capacity;
};

/* output.c: JSON. What is put goes into the current text. */
extern struct text *current;
__attribute__((format(printf, 1, 2))) void put(const char *format, ...);
void put_string(const char *value);
void append(struct text *text, const char *data, size_t size);
void write_all(int file, const char *data, size_t size);

/* device.c */
extern int device;
extern uint64_t room;
void op_init(void);
void op_device(const char *number);
void op_info(void);
void op_mark(char *values);
void op_nvml(void);
void op_maps(const char *path);

/* calls.c: the driver's functions, by dlsym, and as the CUDA runtime has them, by cuGetProcAddress. */
extern void *driver, *nvml, *found;
void *look(void *library, const char *name);
void *by_lookup(const char *name);
void *by_old_lookup(const char *name);    /* as the CUDA 11 runtime asks */
void *by_second_lookup(const char *name); /* by the cuGetProcAddress that cuGetProcAddress gives out itself */
void op_lookup(void);

#define CALL(library, name, types, ...) (look(library, #name) ? ((int(*) types)found)(__VA_ARGS__) : ABSENT)
#define CUDA(name, types, ...) CALL(driver, name, types, __VA_ARGS__)
#define NVML(name, types, ...) CALL(nvml, name, types, __VA_ARGS__)

/* memory.c */
void op_take(char *values);
void op_give(const char *slot);

/* rate.c */
void op_rate(char *values, int extended);

#endif
