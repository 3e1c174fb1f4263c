/* Binds to the oldest versions of functions that moved between C libraries, so that the program runs on a host or in
 * an image whose C library is older than the compiler's. */
#ifndef SIM_SMI_OLDEST_H
#define SIM_SMI_OLDEST_H

#if defined(__x86_64__)
#define OLDEST "GLIBC_2.2.5"
#elif defined(__aarch64__)
#define OLDEST "GLIBC_2.17"
#else
#error "no such platform"
#endif

__asm__(".symver dlopen,dlopen@" OLDEST);
__asm__(".symver dlsym,dlsym@" OLDEST);
__asm__(".symver __libc_start_main,__libc_start_main@" OLDEST);

#endif
