/* PTX, as far as it takes to tell how long a thread of a kernel runs: the scalar integer instructions, branches, and
 * the clocks. What it computes with anything else doesn't matter here, and takes its time. Contract: PTX ISA. */
#ifndef SIM_CUDA_PTX_H
#define SIM_CUDA_PTX_H

#include <stddef.h>
#include <stdint.h>

enum { PTX_REGISTERS = 512, PTX_PARAMETERS = 32, PTX_OPERANDS = 5, PTX_NAME = 128 };

enum ptx_operation {
    PTX_OTHER, PTX_MOV, PTX_LOAD, PTX_ADD, PTX_SUB, PTX_MUL, PTX_MAD, PTX_DIV, PTX_REM, PTX_AND, PTX_OR, PTX_XOR,
    PTX_NOT, PTX_NEG, PTX_MIN, PTX_MAX, PTX_SHL, PTX_SHR, PTX_SETP, PTX_SELP, PTX_BRANCH, PTX_SLEEP, PTX_RETURN,
};

enum ptx_compare { PTX_EQ, PTX_NE, PTX_LT, PTX_LE, PTX_GT, PTX_GE };

enum ptx_kind { PTX_NONE, PTX_REGISTER, PTX_NUMBER, PTX_PARAMETER, PTX_CLOCK, PTX_TIMER, PTX_ONE };

struct ptx_operand {
    enum ptx_kind kind;
    uint64_t value; /* a register's or parameter's place, or the number itself */
};

struct ptx_instruction {
    enum ptx_operation operation;
    enum ptx_compare compare;
    int guard, inverted; /* the predicate register that it depends on; -1: none */
    int bits, is_signed, wide;
    int target; /* of a branch: the place of an instruction */
    struct ptx_operand operands[PTX_OPERANDS];
};

struct ptx {
    int parameters;
    size_t sizes[PTX_PARAMETERS]; /* bytes */
    int length;
    struct ptx_instruction *code;
};

/* Reads the kernel of that name; NULL where the text can't be read that far or there is no memory. */
struct ptx *ptx_read(const char *text, const char *name);
void ptx_free(struct ptx *ptx);

/* How many clock cycles one thread takes. */
uint64_t ptx_cycles(const struct ptx *ptx, void **parameters, int clock_mhz);

#endif
