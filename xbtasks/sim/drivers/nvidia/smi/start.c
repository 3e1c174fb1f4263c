/* The program's entry, in place of the compiler's, which needs a C library as new as its own. There are no
 * constructors to run: the two empty arguments. */
#include <stdlib.h>

#include "oldest.h"

int main(int count, char **arguments);
int __libc_start_main(int (*program)(int, char **), int count, char **arguments, void (*init)(void), void (*fini)(void),
                      void (*rtld_fini)(void), void *stack_end);

__attribute__((noreturn, used)) static void begin(void **stack, void (*rtld_fini)(void))
{
    __libc_start_main(main, (int)(long)stack[0], (char **)&stack[1], NULL, NULL, rtld_fini, stack);
    abort();
}

#if defined(__x86_64__)
__asm__(".globl _start\n_start:\n xor %ebp, %ebp\n mov %rsp, %rdi\n mov %rdx, %rsi\n and $-16, %rsp\n call begin\n");
#else
__asm__(".globl _start\n_start:\n mov x29, #0\n mov x30, #0\n mov x1, x0\n mov x0, sp\n bl begin\n");
#endif
