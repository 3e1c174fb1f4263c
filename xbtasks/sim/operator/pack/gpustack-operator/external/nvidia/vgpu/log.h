/* Messages, on stderr. LIBCUDA_LOG_LEVEL chooses: 0 and 1 errors alone, 2 (the default) warnings and notices too, 3
 * information, 4 everything. */
#ifndef VGPU_LOG_H
#define VGPU_LOG_H

enum vgpu_level { VGPU_ERROR = 1, VGPU_NOTICE = 2, VGPU_WARNING = 2, VGPU_INFO = 3 };

/* Reads LIBCUDA_LOG_LEVEL. Until it is called, the default holds: it is the start of CUDA that calls it, so a program
 * that uses NVML alone, such as nvidia-smi, keeps the default. */
void vgpu_log_start(void);

void vgpu_log(enum vgpu_level level, const char *name, const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

#define LOG_ERROR(...) vgpu_log(VGPU_ERROR, "ERROR", __FILE_NAME__, __LINE__, __VA_ARGS__)
#define LOG_WARN(...) vgpu_log(VGPU_WARNING, "Warn", __FILE_NAME__, __LINE__, __VA_ARGS__)
#define LOG_NOTICE(...) vgpu_log(VGPU_NOTICE, "Msg", __FILE_NAME__, __LINE__, __VA_ARGS__)
#define LOG_INFO(...) vgpu_log(VGPU_INFO, "Info", __FILE_NAME__, __LINE__, __VA_ARGS__)

#endif
