/* The exported functions: each goes on to its implementation with all its arguments. */

    .text

#if defined(__x86_64__)
    .macro forward name, implementation
    .globl \name
    .type \name, @function
\name:
    endbr64
    jmp \implementation@PLT
    .size \name, . - \name
    .endm
#elif defined(__aarch64__)
    .macro forward name, implementation
    .globl \name
    .type \name, %function
\name:
    hint #34 /* bti c */
    b \implementation
    .size \name, . - \name
    .endm
#else
#error "no forwarding code for this processor"
#endif

#define FORWARD(name) forward name, name##Impl
#include "forward.def"

    .section .note.GNU-stack, "", %progbits
