/* Reads a kernel's text into instructions. */
#include <stdlib.h>
#include <string.h>

#include "ptx.h"
#include "ptxtext.h"

struct label {
    char name[PTX_NAME];
    int place;
};

struct reader {
    struct ptx *ptx;
    char registers[PTX_REGISTERS][32], parameters[PTX_PARAMETERS][PTX_NAME];
    int registers_seen, room, labels_seen, labels_room;
    struct label *labels, *targets; /* targets[i]: where instruction i branches to */
};

static const struct {
    const char *name;
    enum ptx_operation operation;
} operations[] = {
    {"mov", PTX_MOV}, {"cvt", PTX_MOV}, {"cvta", PTX_MOV}, {"ld", PTX_LOAD}, {"add", PTX_ADD}, {"sub", PTX_SUB},
    {"mul", PTX_MUL}, {"mad", PTX_MAD}, {"div", PTX_DIV}, {"rem", PTX_REM}, {"and", PTX_AND}, {"or", PTX_OR},
    {"xor", PTX_XOR}, {"not", PTX_NOT}, {"neg", PTX_NEG}, {"min", PTX_MIN}, {"max", PTX_MAX}, {"shl", PTX_SHL},
    {"shr", PTX_SHR}, {"setp", PTX_SETP}, {"selp", PTX_SELP}, {"bra", PTX_BRANCH}, {"nanosleep", PTX_SLEEP},
    {"ret", PTX_RETURN}, {"exit", PTX_RETURN},
};

static const struct {
    const char *name;
    enum ptx_compare compare;
} compares[] = {
    {"eq", PTX_EQ}, {"ne", PTX_NE}, {"lt", PTX_LT}, {"lo", PTX_LT}, {"le", PTX_LE}, {"ls", PTX_LE},
    {"gt", PTX_GT}, {"hi", PTX_GT}, {"ge", PTX_GE}, {"hs", PTX_GE},
};

static void copy_name(char *to, size_t size, const char *from, size_t length)
{
    if (length >= size)
        length = size - 1;
    memcpy(to, from, length);
    to[length] = '\0';
}

/* The place of a register, by its name; one that wasn't seen before gets the next. -1: there are too many. */
static int register_of(struct reader *reader, const char *text, size_t length)
{
    char name[32];

    copy_name(name, sizeof name, text, length);
    for (int i = 0; i < reader->registers_seen; i++)
        if (strcmp(reader->registers[i], name) == 0)
            return i;
    if (reader->registers_seen == PTX_REGISTERS)
        return -1;
    strcpy(reader->registers[reader->registers_seen], name);
    return reader->registers_seen++;
}

/* Every thread is thread 0 of block 0; how many there are is taken as one. */
static enum ptx_kind special(const char *name, size_t length)
{
    if (strncmp(name, "%clock", 6) == 0 && strncmp(name, "%clock_hi", 9) != 0)
        return PTX_CLOCK;
    if (strncmp(name, "%globaltimer", 12) == 0)
        return PTX_TIMER;
    if (strncmp(name, "%ntid", 5) == 0 || strncmp(name, "%nctaid", 7) == 0)
        return PTX_ONE;
    if (strncmp(name, "%tid", 4) == 0 || strncmp(name, "%ctaid", 6) == 0 ||
        (length == 7 && strncmp(name, "%laneid", 7) == 0))
        return PTX_NUMBER;
    return PTX_NONE;
}

static struct ptx_operand operand_of(struct reader *reader, const char *text, size_t length)
{
    struct ptx_operand operand = {PTX_NONE, 0};

    if (length > 0 && *text == '[') {
        const char *name = ptx_skip_blanks(text + 1);
        size_t size = ptx_name_length(name);

        for (int i = 0; i < reader->ptx->parameters; i++)
            if (strlen(reader->parameters[i]) == size && strncmp(reader->parameters[i], name, size) == 0)
                operand = (struct ptx_operand){PTX_PARAMETER, (uint64_t)i};
    } else if (length > 0 && *text == '%') {
        size_t size = ptx_name_length(text); /* of a pair of predicates the first */
        int place;

        operand.kind = special(text, size);
        if (operand.kind != PTX_NONE)
            return operand;
        place = register_of(reader, text, size);
        if (place >= 0)
            operand = (struct ptx_operand){PTX_REGISTER, (uint64_t)place};
    } else if (length > 0 && (*text == '-' || (*text >= '0' && *text <= '9'))) {
        operand.kind = PTX_NUMBER;
        operand.value = *text == '-' ? (uint64_t)strtoll(text, NULL, 0) : strtoull(text, NULL, 0);
    }
    return operand;
}

/* The parts of "add.s64": the operation and what modifies it. */
static void read_operation(struct ptx_instruction *instruction, const char *text, size_t length)
{
    const char *end = text + length;

    instruction->bits = 64;
    for (int part = 0; text < end; part++) {
        size_t size = strcspn(text, ".");

        if (size > (size_t)(end - text))
            size = (size_t)(end - text);
        for (size_t i = 0; part == 0 && i < sizeof operations / sizeof *operations; i++)
            if (strlen(operations[i].name) == size && strncmp(operations[i].name, text, size) == 0)
                instruction->operation = operations[i].operation;
        for (size_t i = 0; part > 0 && i < sizeof compares / sizeof *compares; i++)
            if (strlen(compares[i].name) == size && strncmp(compares[i].name, text, size) == 0)
                instruction->compare = compares[i].compare;
        if (part > 0 && size >= 2 && strchr("usbf", *text) != NULL && text[1] >= '1' && text[1] <= '9') {
            instruction->bits = atoi(text + 1);
            instruction->is_signed = *text == 's';
            if (*text == 'f')
                instruction->operation = PTX_OTHER; /* what isn't an integer decides nothing here */
        }
        instruction->wide |= part > 0 && size == 4 && strncmp(text, "wide", 4) == 0;
        text += size + (text + size < end);
    }
}

static int add(struct reader *reader, struct ptx_instruction instruction, const char *target, size_t length)
{
    struct ptx *ptx = reader->ptx;

    if (ptx->length == reader->room) {
        int room = reader->room == 0 ? 64 : reader->room * 2;
        struct ptx_instruction *code = realloc(ptx->code, (size_t)room * sizeof *code);
        struct label *targets;

        if (code == NULL)
            return 0;
        ptx->code = code;
        targets = realloc(reader->targets, (size_t)room * sizeof *targets);
        if (targets == NULL)
            return 0;
        reader->targets = targets;
        reader->room = room;
    }
    copy_name(reader->targets[ptx->length].name, PTX_NAME, target, length);
    ptx->code[ptx->length++] = instruction;
    return 1;
}

static int add_label(struct reader *reader, const char *name, size_t length)
{
    if (reader->labels_seen == reader->labels_room) {
        int room = reader->labels_room == 0 ? 16 : reader->labels_room * 2;
        struct label *labels = realloc(reader->labels, (size_t)room * sizeof *labels);

        if (labels == NULL)
            return 0;
        reader->labels = labels;
        reader->labels_room = room;
    }
    copy_name(reader->labels[reader->labels_seen].name, PTX_NAME, name, length);
    reader->labels[reader->labels_seen++].place = reader->ptx->length;
    return 1;
}

/* One statement: labels, a guard, the operation, its operands. Declarations begin with a dot. */
static int read_statement(struct reader *reader, const char *at, const char *end)
{
    struct ptx_instruction instruction = {.guard = -1, .target = -1};
    const char *target;
    size_t length;

    at = ptx_skip_blanks(at);
    while (at < end && *at != '@' && *at != '.' && at[length = ptx_name_length(at)] == ':') {
        if (!add_label(reader, at, length))
            return 0;
        at = ptx_skip_blanks(at + length + 1);
    }
    if (at >= end || *at == '.')
        return 1;
    if (*at == '@') {
        instruction.inverted = at[1] == '!';
        at += 1 + instruction.inverted;
        length = ptx_name_length(at);
        instruction.guard = register_of(reader, at, length);
        at = ptx_skip_blanks(at + length);
    }
    length = ptx_name_length(at);
    read_operation(&instruction, at, length);
    target = at = ptx_skip_blanks(at + length);
    for (int i = 0; i < PTX_OPERANDS && at < end; i++) {
        length = strcspn(at, ",;");
        instruction.operands[i] = operand_of(reader, at, length);
        at = ptx_skip_blanks(at + length + 1);
    }
    return add(reader, instruction, target, ptx_name_length(target));
}

static int read_body(struct reader *reader, const char *at, const char *end)
{
    while (at < end) {
        size_t length = strcspn(at, ";{}");
        int read = at[length] == ';' ? read_statement(reader, at, at + length) : 1;

        if (!read)
            return 0;
        at += length + 1;
    }
    for (int i = 0; i < reader->ptx->length; i++)
        for (int j = 0; reader->ptx->code[i].operation == PTX_BRANCH && j < reader->labels_seen; j++)
            if (strcmp(reader->labels[j].name, reader->targets[i].name) == 0)
                reader->ptx->code[i].target = reader->labels[j].place;
    return 1;
}

/* ".param .u64 name" or ".param .align 8 .b8 name[16]": its name, and its size in bytes. */
static void read_parameter(struct reader *reader, const char *at, const char *end)
{
    int place = reader->ptx->parameters++;
    size_t bytes = 8;

    while ((at = ptx_skip_blanks(at)) < end) {
        size_t length = ptx_name_length(at);

        if (*at == '.' && strchr("usbf", at[1]) != NULL && at[2] >= '1' && at[2] <= '9')
            bytes = (size_t)atoi(at + 2) / 8;
        else if (*at == '[')
            bytes *= strtoul(at + 1, NULL, 10);
        else if (length > 0 && *at != '.' && (*at < '0' || *at > '9'))
            copy_name(reader->parameters[place], PTX_NAME, at, length);
        at += length > 0 ? length : 1;
    }
    reader->ptx->sizes[place] = bytes;
}

/* Reads what stands in parentheses after the name, if anything does; returns where it ends. */
static const char *read_parameters(struct reader *reader, const char *at)
{
    const char *end;

    at = ptx_skip_blanks(at);
    if (*at != '(')
        return at;
    end = strchr(at, ')');
    for (at = ptx_skip_blanks(at + 1); end != NULL && at < end && reader->ptx->parameters < PTX_PARAMETERS;) {
        const char *last = at + strcspn(at, ",)");

        read_parameter(reader, at, last);
        at = last + 1;
    }
    return end;
}

static int read_kernel(struct reader *reader, const char *text, const char *name)
{
    const char *at = ptx_entry(text, name), *end;

    at = at == NULL ? NULL : read_parameters(reader, at);
    at = at == NULL ? NULL : strchr(at, '{');
    end = at == NULL ? NULL : ptx_block_end(at);
    return end != NULL && read_body(reader, at + 1, end);
}

struct ptx *ptx_read(const char *text, const char *name)
{
    struct reader *reader = calloc(1, sizeof *reader);
    char *plain = ptx_without_comments(text);
    struct ptx *ptx = calloc(1, sizeof *ptx);

    if (reader != NULL && plain != NULL && ptx != NULL) {
        reader->ptx = ptx;
        if (!read_kernel(reader, plain, name)) {
            ptx_free(ptx);
            ptx = NULL;
        }
        free(reader->labels);
        free(reader->targets);
    } else {
        ptx_free(ptx);
        ptx = NULL;
    }
    free(reader);
    free(plain);
    return ptx;
}

void ptx_free(struct ptx *ptx)
{
    if (ptx != NULL)
        free(ptx->code);
    free(ptx);
}
