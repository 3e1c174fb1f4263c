/* One entry for each compute hook: it asks compute_enter where the call goes on, and goes there with every
 * argument as it came, whatever the function's signature. */

    .text
    .set hook_index, 0

#if defined(__x86_64__)

    .macro hook name
    .globl \name
    .type \name, @function
\name:
    endbr64
    movl $hook_index, %r11d
    jmp enter
    .size \name, . - \name
    .set hook_index, hook_index + 1
    .endm

    .type enter, @function
enter:
    .cfi_startproc
    pushq %rdi
    pushq %rsi
    pushq %rdx
    pushq %rcx
    pushq %r8
    pushq %r9
    pushq %rax
    .cfi_adjust_cfa_offset 56
    movl %r11d, %edi
    call compute_enter
    movq %rax, %r11
    popq %rax
    popq %r9
    popq %r8
    popq %rcx
    popq %rdx
    popq %rsi
    popq %rdi
    .cfi_adjust_cfa_offset -56
    jmp *%r11
    .cfi_endproc
    .size enter, . - enter

#elif defined(__aarch64__)

    .macro hook name
    .globl \name
    .type \name, %function
\name:
    hint #34 /* bti c */
    mov w16, #hook_index
    b enter
    .size \name, . - \name
    .set hook_index, hook_index + 1
    .endm

    .type enter, %function
enter:
    .cfi_startproc
    stp x29, x30, [sp, #-96]!
    .cfi_def_cfa_offset 96
    .cfi_offset 29, -96
    .cfi_offset 30, -88
    stp x0, x1, [sp, #16]
    stp x2, x3, [sp, #32]
    stp x4, x5, [sp, #48]
    stp x6, x7, [sp, #64]
    str x8, [sp, #80]
    mov w0, w16
    bl compute_enter
    mov x16, x0
    ldp x0, x1, [sp, #16]
    ldp x2, x3, [sp, #32]
    ldp x4, x5, [sp, #48]
    ldp x6, x7, [sp, #64]
    ldr x8, [sp, #80]
    ldp x29, x30, [sp], #96
    .cfi_restore 30
    .cfi_restore 29
    .cfi_def_cfa_offset 0
    br x16
    .cfi_endproc
    .size enter, . - enter

#else
#error "no entry code for this processor"
#endif

#define COMPUTE_HOOK(name) hook name
#include "work_hooks.def"
#include "order_hooks.def"

    .section .note.GNU-stack, "", %progbits
