#define _GNU_SOURCE
#include "unwind.h"

#include "../base/own_memory.h"
#include "frame_bytes.h"

#include <string.h>

static const uint8_t preserved[PRESERVED_COUNT] = PRESERVED_REGISTERS;

static uint32_t preserved_mask(void)
{
    uint32_t mask = 0;
    for (int i = 0; i < PRESERVED_COUNT; i++)
        mask |= 1u << preserved[i];
    return mask;
}

/* --- memory ------------------------------------------------------------------------------------------------------- */

/* Words of other stacks come many at a time. */
static int load_copied(struct unwind_cursor *cursor, uintptr_t address, uintptr_t *value)
{
    uintptr_t window = address & ~(uintptr_t)(UNWIND_WINDOW - 1);
    if (address % UNWIND_WINDOW > UNWIND_WINDOW - sizeof *value)
        return own_memory_read(value, address, sizeof *value) == sizeof *value;
    if (!cursor->window_bytes || cursor->window != window) {
        cursor->window = window;
        cursor->window_bytes = own_memory_read(cursor->copy, window, UNWIND_WINDOW);
    }
    if (address - window + sizeof *value > cursor->window_bytes)
        return 0;
    memcpy(value, cursor->copy + (address - window), sizeof *value);
    return 1;
}

/* AddressSanitizer is not asked: what a frame keeps of its caller's registers is no variable. */
static __attribute__((no_sanitize("address"))) int load(struct unwind_cursor *cursor, uintptr_t address, uintptr_t *value)
{
    if (address >= cursor->stack_begin && address < cursor->stack_end && cursor->stack_end - address >= sizeof *value &&
        address % sizeof *value == 0) {
        *value = *(const uintptr_t *)address;
        return 1;
    }
    return load_copied(cursor, address, value);
}

/* Notes that the frame's size rests on a word with this value. */
static void depend(struct unwind_cursor *cursor, const uintptr_t *word, uintptr_t value)
{
    if (cursor->depend_count < UNWIND_DEPENDS) {
        cursor->depends[cursor->depend_count].word = word;
        cursor->depends[cursor->depend_count].value = value;
    }
    cursor->depend_count++;
}

/* --- expressions (DWARF 5, 2.5) ----------------------------------------------------------------------------------- */

enum { MOST_VALUES = 16, MOST_OPERATIONS = 64 };

struct evaluation {
    struct unwind_cursor *cursor;
    struct bytes bytes;
    uintptr_t value[MOST_VALUES];
    unsigned count;
    int is_of_size;             /* of the frame: what it reads is noted */
};

static int push(struct evaluation *e, uintptr_t value)
{
    if (e->count == MOST_VALUES)
        return 0;
    e->value[e->count++] = value;
    return 1;
}

static int push_constant(struct evaluation *e, unsigned bytes, int is_signed)
{
    return push(e, is_signed ? (uintptr_t)take_signed(&e->bytes, bytes) : take(&e->bytes, bytes));
}

static int push_register(struct evaluation *e, uint64_t number)
{
    int64_t offset = take_signed_leb(&e->bytes);
    if (number >= FRAME_REGISTERS || !(e->cursor->known >> number & 1))
        return 0;
    if (e->is_of_size && number != STACK_POINTER)
        depend(e->cursor, e->cursor->at[number], e->cursor->value[number]);
    return push(e, e->cursor->value[number] + (uintptr_t)offset);
}

static int dereference(struct evaluation *e)
{
    if (e->count == 0)
        return 0;
    uintptr_t *top = &e->value[e->count - 1], address = *top;
    if (!load(e->cursor, address, top))
        return 0;
    if (e->is_of_size)
        depend(e->cursor, (const uintptr_t *)address, *top);
    return 1;
}

static int combine(struct evaluation *e, unsigned operation)
{
    if (e->count < 2)
        return 0;
    uintptr_t right = e->value[--e->count], *left = &e->value[e->count - 1];
    switch (operation) {
    case 0x1a: *left &= right; return 1;
    case 0x1c: *left -= right; return 1;
    case 0x1e: *left *= right; return 1;
    case 0x21: *left |= right; return 1;
    case 0x22: *left += right; return 1;
    case 0x24: *left = right < 64 ? *left << right : 0; return 1;
    case 0x25: *left = right < 64 ? *left >> right : 0; return 1;
    case 0x27: *left ^= right; return 1;
    case 0x29: *left = *left == right; return 1;
    case 0x2a: *left = (intptr_t)*left >= (intptr_t)right; return 1;
    case 0x2b: *left = (intptr_t)*left > (intptr_t)right; return 1;
    case 0x2c: *left = (intptr_t)*left <= (intptr_t)right; return 1;
    case 0x2d: *left = (intptr_t)*left < (intptr_t)right; return 1;
    case 0x2e: *left = *left != right; return 1;
    }
    return 0;
}

/* 0: an operation that compilers do not use for frames, or one that fails. */
static int operate(struct evaluation *e)
{
    unsigned operation = (unsigned)take(&e->bytes, 1);
    if (operation >= 0x30 && operation <= 0x4f) /* DW_OP_lit0 and further */
        return push(e, operation - 0x30);
    if (operation >= 0x70 && operation <= 0x8f) /* DW_OP_breg0 and further */
        return push_register(e, operation - 0x70);
    switch (operation) {
    case 0x03: return push_constant(e, 8, 0); /* DW_OP_addr */
    case 0x06: return dereference(e);
    case 0x08: case 0x09: return push_constant(e, 1, operation & 1);
    case 0x0a: case 0x0b: return push_constant(e, 2, operation & 1);
    case 0x0c: case 0x0d: return push_constant(e, 4, operation & 1);
    case 0x0e: case 0x0f: return push_constant(e, 8, operation & 1);
    case 0x10: return push(e, take_unsigned_leb(&e->bytes));
    case 0x11: return push(e, (uintptr_t)take_signed_leb(&e->bytes));
    case 0x12: return e->count > 0 && push(e, e->value[e->count - 1]);
    case 0x13: return e->count > 0 && e->count--;
    case 0x23: return e->count > 0 && (e->value[e->count - 1] += take_unsigned_leb(&e->bytes), 1);
    case 0x92: return push_register(e, take_unsigned_leb(&e->bytes)); /* DW_OP_bregx */
    case 0x96: return 1;                           /* DW_OP_nop */
    }
    return combine(e, operation);
}

/* `cfa`: what stands on the stack first; NULL: nothing, as it is what is asked for. */
static int evaluate(struct unwind_cursor *cursor, const unsigned char *expression, const uintptr_t *cfa, uintptr_t *result)
{
    struct evaluation e = {.cursor = cursor, .bytes = {expression, expression + 10, 0}, .is_of_size = !cfa};
    uint64_t length = take_unsigned_leb(&e.bytes);
    e.bytes.end = e.bytes.at + length;
    if (cfa)
        push(&e, *cfa);
    for (int i = 0; e.bytes.at < e.bytes.end; i++)
        if (i == MOST_OPERATIONS || !operate(&e) || e.bytes.bad)
            return 0;
    if (e.count == 0)
        return 0;
    *result = e.value[e.count - 1];
    return 1;
}

/* --- frames ------------------------------------------------------------------------------------------------------- */

/* The registers of the caller are in place but for these. */
static int arrive(struct unwind_cursor *cursor, uintptr_t stack_pointer, int by_signal)
{
    uintptr_t from = cursor->ip, from_stack = cursor->value[STACK_POINTER];
    cursor->value[STACK_POINTER] = stack_pointer;
    cursor->known |= 1u << STACK_POINTER;
    if (!(cursor->known >> RETURN_ADDRESS & 1))
        return -1;
    cursor->ip = unwind_plain_address(cursor->value[RETURN_ADDRESS]);
    cursor->is_exact = cursor->came_by_signal = by_signal;
    if (!cursor->ip)
        return 0;
    return cursor->ip != from || stack_pointer != from_stack ? 1 : -1;
}

static int follow_row(struct unwind_cursor *cursor, const struct unwind_row *row)
{
    if (row->is_outermost)
        return 0;
    if (!(cursor->known >> row->cfa_register & 1))
        return -1;
    uintptr_t cfa = cursor->value[row->cfa_register] + (uintptr_t)(intptr_t)row->cfa_offset;
    uint32_t known = cursor->known;
    if (row->cfa_register != STACK_POINTER)
        depend(cursor, cursor->at[row->cfa_register], cursor->value[row->cfa_register]);
    cursor->known = 0;
    for (int i = 0; i < PRESERVED_COUNT; i++) {
        unsigned number = preserved[i];
        int is_known = row->saved[i] == 0 && known >> number & 1;
        if (row->saved[i]) {
            uintptr_t at = cfa + (uintptr_t)(intptr_t)row->saved[i];
            is_known = load(cursor, at, &cursor->value[number]);
            cursor->at[number] = (const uintptr_t *)at;
        }
        cursor->known |= (uint32_t)is_known << number;
    }
    return arrive(cursor, cfa, 0);
}

/* What the caller had in a register; 0: that is not known. */
static int recover(struct unwind_cursor *cursor, struct frame_rule rule, unsigned number, uintptr_t cfa, uintptr_t *value,
                   const uintptr_t **at)
{
    uintptr_t address = cfa;
    switch (rule.kind) {
    case FRAME_SAME:
        *value = cursor->value[number];
        *at = cursor->at[number];
        return cursor->known >> number & 1;
    case FRAME_UNDEFINED: return 0;
    case FRAME_SAVED: address = cfa + (uintptr_t)rule.offset; break;
    case FRAME_IS_OFFSET: *value = cfa + (uintptr_t)rule.offset; return 1;
    case FRAME_IN_REGISTER:
        if (rule.offset < 0 || rule.offset >= FRAME_REGISTERS || !(cursor->known >> rule.offset & 1))
            return 0;
        *value = cursor->value[rule.offset];
        *at = cursor->at[rule.offset];
        return 1;
    case FRAME_SAVED_EXPRESSION:
        if (!evaluate(cursor, rule.expression, &cfa, &address))
            return 0;
        break;
    case FRAME_IS_EXPRESSION: return evaluate(cursor, rule.expression, &cfa, value);
    }
    *at = (const uintptr_t *)address;
    return load(cursor, address, value);
}

static int is_outermost(const struct frame_rules *rules)
{
    return rules->of[RETURN_ADDRESS].kind == FRAME_UNDEFINED;
}

static int follow_rules(struct unwind_room *room)
{
    struct unwind_cursor *cursor = &room->cursor;
    const struct frame_rules *rules = &room->rules;
    uintptr_t cfa, *value = room->value;
    const uintptr_t **at = room->at;
    uint32_t known = 0;
    if (is_outermost(rules))
        return 0;
    if (rules->cfa.kind == FRAME_IS_EXPRESSION) {
        if (!evaluate(cursor, rules->cfa.expression, NULL, &cfa))
            return -1;
    } else {
        if (rules->cfa_register >= FRAME_REGISTERS || !(cursor->known >> rules->cfa_register & 1))
            return -1;
        cfa = cursor->value[rules->cfa_register] + (uintptr_t)rules->cfa.offset;
        if (rules->cfa_register != STACK_POINTER)
            depend(cursor, cursor->at[rules->cfa_register], cursor->value[rules->cfa_register]);
    }
    for (unsigned i = 0; i < FRAME_REGISTERS; i++) {
        at[i] = NULL;
        value[i] = 0;
        known |= (uint32_t)recover(cursor, rules->of[i], i, cfa, &value[i], &at[i]) << i;
    }
    uintptr_t stack_pointer = rules->of[STACK_POINTER].kind != FRAME_SAME && known >> STACK_POINTER & 1 ? value[STACK_POINTER] : cfa;
    value[STACK_POINTER] = cursor->value[STACK_POINTER]; /* for arrive() to compare with */
    memcpy(cursor->value, value, sizeof cursor->value);
    memcpy(cursor->at, at, sizeof cursor->at);
    cursor->known = rules->is_signal ? known : known & preserved_mask(); /* calls may leave anything in others */
    return arrive(cursor, stack_pointer, rules->is_signal);
}

/* The row of rules that are the usual ones; 0: they are not. */
static int make_row(struct unwind_row *row, uintptr_t code, const struct frame_rules *rules)
{
    if (rules->is_signal || rules->cfa.kind != FRAME_IN_REGISTER || rules->cfa_register >= FRAME_REGISTERS ||
        rules->cfa.offset != (int32_t)rules->cfa.offset || rules->of[STACK_POINTER].kind != FRAME_SAME)
        return 0;
    *row = (struct unwind_row){.code = code,
                               .cfa_offset = (int32_t)rules->cfa.offset,
                               .cfa_register = (uint8_t)rules->cfa_register,
                               .is_outermost = (uint8_t)is_outermost(rules)};
    for (int i = 0; i < PRESERVED_COUNT && !row->is_outermost; i++) {
        struct frame_rule rule = rules->of[preserved[i]];
        int is_usual = rule.kind == FRAME_SAME || (rule.kind == FRAME_SAVED && rule.offset && rule.offset == (int32_t)rule.offset);
        if (!is_usual)
            return 0;
        row->saved[i] = rule.kind == FRAME_SAVED ? (int32_t)rule.offset : 0;
    }
    return 1;
}

/* Of code of which nothing is said, as is made at run time: functions that keep a frame pointer have it saved beside the return
 * address. What is far away is another stack's, as of who has made a coroutine. */
static int follow_frame_pointer(struct unwind_cursor *cursor)
{
#if defined(__x86_64__)
    enum { LARGEST_FRAME = 1 << 20 };
    uintptr_t frame = cursor->value[FRAME_POINTER], outer, address;
    if (!(cursor->known >> FRAME_POINTER & 1) || frame - cursor->value[STACK_POINTER] > LARGEST_FRAME || frame % sizeof(uintptr_t) ||
        !load(cursor, frame, &outer) || !load(cursor, frame + sizeof(uintptr_t), &address))
        return -1;
    depend(cursor, cursor->at[FRAME_POINTER], frame);
    cursor->known &= ~(1u << 3 | 0xfu << 12); /* what it saved besides is not known */
    cursor->value[FRAME_POINTER] = outer;
    cursor->at[FRAME_POINTER] = (const uintptr_t *)frame;
    cursor->value[RETURN_ADDRESS] = address;
    cursor->at[RETURN_ADDRESS] = (const uintptr_t *)(frame + sizeof(uintptr_t));
    cursor->known |= 1u << RETURN_ADDRESS;
    return arrive(cursor, frame + 2 * sizeof(uintptr_t), 0);
#else
    (void)cursor;
    return -1; /* records are followed by who asks: callsite.c */
#endif
}

void unwind_begin_at(struct unwind_room *room, const ucontext_t *context, uintptr_t begin, uintptr_t end)
{
    struct unwind_cursor *cursor = &room->cursor;
#if defined(__x86_64__)
    static const int by_number[FRAME_REGISTERS] = {REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP, REG_R8,
                                                   REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP};
    for (int i = 0; i < FRAME_REGISTERS; i++)
        cursor->value[i] = (uintptr_t)context->uc_mcontext.gregs[by_number[i]];
    cursor->ip = cursor->value[RETURN_ADDRESS];
    cursor->known = (1u << RETURN_ADDRESS) - 1;
#elif defined(__aarch64__)
    for (int i = 0; i < STACK_POINTER; i++)
        cursor->value[i] = (uintptr_t)context->uc_mcontext.regs[i];
    cursor->value[STACK_POINTER] = (uintptr_t)context->uc_mcontext.sp;
    cursor->ip = (uintptr_t)context->uc_mcontext.pc;
    cursor->known = 0xffffffffu;
#endif
    unwind_enter(cursor, begin, end);
}

void unwind_refresh(struct unwind_room *room)
{
    unsigned long long unloads = frame_info_unloads();
    if (room->unloads == unloads)
        return;
    memset(room->row, 0, sizeof room->row);
    room->unloads = unloads;
}

int unwind_step(struct unwind_room *room)
{
    struct unwind_cursor *cursor = &room->cursor;
    uintptr_t code = cursor->ip - !cursor->is_exact; /* a call may be the last instruction of its function */
    struct unwind_row *row = &room->row[code * 0x9e3779b97f4a7c15u >> 56];
    cursor->depend_count = 0;
    if (row->code == code)
        return follow_row(cursor, row);
    if (!frame_info_find(code, &room->rules, &room->info))
        return follow_frame_pointer(cursor);
    if (!make_row(row, code, &room->rules))
        row->code = 0;
    return follow_rules(room);
}
