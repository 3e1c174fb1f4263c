/* Runs one thread of a kernel, for its time alone. */
#include <stdlib.h>
#include <string.h>

#include "ptx.h"

enum { STEP_CYCLES = 4, MEMORY_CYCLES = 400, READ_CYCLES = 20 };
enum { READS = 50000, MOST_DOUBLINGS = 32, MOST_STEPS = 10000000 };

struct thread {
    const struct ptx *ptx;
    void **parameters;
    int clock_mhz;
    uint64_t cycles, reads, registers[PTX_REGISTERS];
};

static uint64_t value_of(const struct thread *thread, const struct ptx_operand *operand)
{
    uint64_t value = 0;

    switch (operand->kind) {
    case PTX_REGISTER:
        return thread->registers[operand->value];
    case PTX_NUMBER:
        return operand->value;
    case PTX_PARAMETER:
        if (thread->ptx->sizes[operand->value] <= sizeof value)
            memcpy(&value, thread->parameters[operand->value], thread->ptx->sizes[operand->value]);
        return value;
    case PTX_CLOCK:
        return thread->cycles;
    case PTX_TIMER:
        return thread->cycles * 1000 / (uint64_t)thread->clock_mhz;
    case PTX_ONE:
        return 1;
    case PTX_NONE:
        break;
    }
    return 0;
}

/* The number in the instruction's width: its sign extended, or the bits above it cleared. */
static uint64_t in_width(uint64_t value, int bits, int is_signed)
{
    if (bits >= 64)
        return value;
    value &= (1ull << bits) - 1;
    return is_signed && value >> (bits - 1) ? value | ~0ull << bits : value;
}

static int less(uint64_t a, uint64_t b, int is_signed)
{
    return is_signed ? (int64_t)a < (int64_t)b : a < b;
}

static int compare(const struct ptx_instruction *instruction, uint64_t a, uint64_t b)
{
    switch (instruction->compare) {
    case PTX_EQ:
        return a == b;
    case PTX_NE:
        return a != b;
    case PTX_LT:
        return less(a, b, instruction->is_signed);
    case PTX_LE:
        return !less(b, a, instruction->is_signed);
    case PTX_GT:
        return less(b, a, instruction->is_signed);
    case PTX_GE:
        return !less(a, b, instruction->is_signed);
    }
    return 0;
}

static uint64_t divide(uint64_t a, uint64_t b, int is_signed, int rest)
{
    if (b == 0 || (is_signed && (int64_t)b == -1))
        return rest ? 0 : b == 0 ? ~0ull : 0 - a;
    if (is_signed)
        return (uint64_t)(rest ? (int64_t)a % (int64_t)b : (int64_t)a / (int64_t)b);
    return rest ? a % b : a / b;
}

static uint64_t shift_right(uint64_t a, uint64_t b, int is_signed)
{
    if (b > 63)
        return is_signed && (int64_t)a < 0 ? ~0ull : 0;
    return is_signed && (int64_t)a < 0 ? ~(~a >> b) : a >> b;
}

static uint64_t compute(const struct ptx_instruction *instruction, uint64_t a, uint64_t b, uint64_t c)
{
    switch (instruction->operation) {
    case PTX_MOV:
    case PTX_LOAD:
        return a;
    case PTX_ADD:
        return a + b;
    case PTX_SUB:
        return a - b;
    case PTX_MUL:
        return a * b;
    case PTX_MAD:
        return a * b + c;
    case PTX_DIV:
    case PTX_REM:
        return divide(a, b, instruction->is_signed, instruction->operation == PTX_REM);
    case PTX_AND:
        return a & b;
    case PTX_OR:
        return a | b;
    case PTX_XOR:
        return a ^ b;
    case PTX_NOT:
        return ~a;
    case PTX_NEG:
        return 0 - a;
    case PTX_MIN:
        return less(a, b, instruction->is_signed) ? a : b;
    case PTX_MAX:
        return less(a, b, instruction->is_signed) ? b : a;
    case PTX_SHL:
        return b > 63 ? 0 : a << b;
    case PTX_SHR:
        return shift_right(a, b, instruction->is_signed);
    case PTX_SETP:
        return (uint64_t)compare(instruction, a, b);
    case PTX_SELP:
        return c ? a : b;
    default:
        return 0;
    }
}

/* Reading a clock takes its time. A thread that does nothing but wait for one is brought to its end sooner: the more
 * often it has read, the longer a read takes, which is little against the time that has gone by. */
static uint64_t read_cycles(struct thread *thread)
{
    uint64_t doublings = thread->reads++ / READS;

    return (uint64_t)READ_CYCLES << (doublings < MOST_DOUBLINGS ? doublings : MOST_DOUBLINGS);
}

static void perform(struct thread *thread, const struct ptx_instruction *instruction)
{
    const struct ptx_operand *operands = instruction->operands;
    int bits = instruction->bits, is_signed = instruction->is_signed, keep = instruction->operation == PTX_SETP;
    uint64_t a, b, c;

    thread->cycles += STEP_CYCLES;
    if (instruction->operation == PTX_LOAD && operands[1].kind != PTX_PARAMETER)
        thread->cycles += MEMORY_CYCLES;
    if (operands[1].kind == PTX_CLOCK || operands[1].kind == PTX_TIMER)
        thread->cycles += read_cycles(thread);
    if (instruction->operation == PTX_SLEEP)
        thread->cycles += value_of(thread, &operands[0]) * (uint64_t)thread->clock_mhz / 1000;
    if (operands[0].kind != PTX_REGISTER)
        return;
    a = in_width(value_of(thread, &operands[1]), bits, is_signed);
    b = in_width(value_of(thread, &operands[2]), bits, is_signed);
    c = value_of(thread, &operands[3]);
    if (instruction->wide)
        bits *= 2;
    a = compute(instruction, a, b, c);
    thread->registers[operands[0].value] = keep ? a : in_width(a, bits, 0);
}

/* A thread that runs on and on counts with what it took until it was given up. */
uint64_t ptx_cycles(const struct ptx *ptx, void **parameters, int clock_mhz)
{
    struct thread *thread = calloc(1, sizeof *thread);
    uint64_t cycles = 0;
    int at = 0;

    if (thread == NULL)
        return STEP_CYCLES;
    thread->ptx = ptx;
    thread->parameters = parameters;
    thread->clock_mhz = clock_mhz;
    for (int steps = 0; at < ptx->length && steps < MOST_STEPS; steps++) {
        const struct ptx_instruction *instruction = &ptx->code[at++];
        int taken = instruction->guard < 0 || (thread->registers[instruction->guard] != 0) != instruction->inverted;

        if (taken && instruction->operation == PTX_RETURN)
            break;
        if (taken && instruction->operation == PTX_BRANCH && instruction->target >= 0)
            at = instruction->target;
        if (taken)
            perform(thread, instruction);
        else
            thread->cycles += STEP_CYCLES;
    }
    cycles = thread->cycles;
    free(thread);
    return cycles;
}
