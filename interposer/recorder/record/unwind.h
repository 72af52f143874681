/*
 * From a function to its callers, by call frame information (frame_info.h). What a return address says of its frame is remembered, so
 * that a further path through known functions takes a few nanoseconds a frame.
 *
 * Words of the thread's own stack are read as they stand; of other stacks, as coroutines have, those of the page that the stack
 * pointer is in. The rest is copied by the kernel (own_memory.h).
 *
 * Not libunwind: it checked addresses by writing them into a pipe that it kept on the two lowest free descriptors,
 * where a program that put a file of its own got stack bytes into it, and each new path took 33 system calls for signal
 * masks. This one opens nothing. test_unwind.c compares it with the C library's.
 */
#ifndef LAPSCOPE_UNWIND_H
#define LAPSCOPE_UNWIND_H

#include "frame_info.h"

#include <stddef.h>
#include <ucontext.h>

/* What is known of the frame of one return address, where the rules are the usual ones. */
struct unwind_row {
    uintptr_t code;                  /* 0: none */
    int32_t cfa_offset;
    uint8_t cfa_register, is_outermost;
    int32_t saved[PRESERVED_COUNT];  /* from the canonical frame address on; 0: the register is the same in the caller */
};

enum { UNWIND_ROWS = 256 };

enum { UNWIND_WINDOW = 512, UNWIND_DEPENDS = 4, UNWIND_PAGE = 4096 };

struct unwind_cursor {
    uintptr_t ip;                            /* in the frame's function: where its callee returns to */
    uintptr_t value[FRAME_REGISTERS];        /* what registers have in the frame: valid where `known` has the bit */
    const uintptr_t *at[FRAME_REGISTERS];    /* where that is saved; NULL: in no memory */
    uint32_t known;
    int is_exact;                            /* `ip` was interrupted, or is the first: it is not behind a call */
    int came_by_signal;                      /* the last step left the frame of a signal handler's return */
    struct {                                 /* what the size of the frame that was left last rests on besides its stack pointer */
        const uintptr_t *word;               /* where a register was saved that it is counted from, or what was read; NULL: no word */
        uintptr_t value;
    } depends[UNWIND_DEPENDS];
    unsigned depend_count;                   /* more than UNWIND_DEPENDS: not all are listed */
    uintptr_t stack_begin, stack_end;        /* of the stack, from the first frame on, what is read as it stands */
    uintptr_t window;                        /* what was copied of other memory */
    size_t window_bytes;
    unsigned char copy[UNWIND_WINDOW];
};

/* What unwinding needs, not on the program's stack, which may be small: of one thread, for one path at a time. */
struct unwind_room {
    struct unwind_cursor cursor;
    struct frame_rules rules;
    struct frame_info_room info;
    uintptr_t value[FRAME_REGISTERS];
    const uintptr_t *at[FRAME_REGISTERS];
    unsigned long long unloads;      /* see frame_info_unloads */
    struct unwind_row row[UNWIND_ROWS];
};

/* What a frame's registers hold is in the cursor. `begin` and `end` are of the thread's stack, on which it may not be. */
static inline void unwind_enter(struct unwind_cursor *cursor, uintptr_t begin, uintptr_t end)
{
    uintptr_t here = cursor->value[STACK_POINTER];
    int is_own = here >= begin && here < end;
    for (int i = 0; i < FRAME_REGISTERS; i++)
        cursor->at[i] = NULL;
    cursor->is_exact = 1;
    cursor->came_by_signal = 0;
    cursor->depend_count = 0;
    cursor->stack_begin = here;
    cursor->stack_end = is_own ? end : (here | (UNWIND_PAGE - 1)) + 1; /* of another stack this page is there, whatever follows */
    cursor->window_bytes = 0;
}

/* The frame that a signal interrupted, of which its handler was given this. */
void unwind_begin_at(struct unwind_room *room, const ucontext_t *context, uintptr_t begin, uintptr_t end);

/* The frame of the function that this is inlined into. */
static inline __attribute__((always_inline)) void unwind_begin(struct unwind_room *room, uintptr_t begin, uintptr_t end)
{
    struct unwind_cursor *cursor = &room->cursor;
    uintptr_t *value = cursor->value;
#if defined(__x86_64__)
    __asm__ volatile("movq %%rbx, 24(%1)\n\tmovq %%rbp, 48(%1)\n\tmovq %%rsp, 56(%1)\n\tmovq %%r12, 96(%1)\n\t"
                     "movq %%r13, 104(%1)\n\tmovq %%r14, 112(%1)\n\tmovq %%r15, 120(%1)\n\tleaq 0f(%%rip), %0\n0:"
                     : "=&r"(cursor->ip)
                     : "r"(value)
                     : "memory");
    cursor->known = 1u << 3 | 1u << FRAME_POINTER | 1u << STACK_POINTER | 0xfu << 12;
#elif defined(__aarch64__)
    __asm__ volatile("stp x19, x20, [%1, #152]\n\tstp x21, x22, [%1, #168]\n\tstp x23, x24, [%1, #184]\n\t"
                     "stp x25, x26, [%1, #200]\n\tstp x27, x28, [%1, #216]\n\tstp x29, x30, [%1, #232]\n\t"
                     "mov %0, sp\n\tstr %0, [%1, #248]\n\tadr %0, 0f\n0:"
                     : "=&r"(cursor->ip)
                     : "r"(value)
                     : "memory");
    cursor->known = 0xfff80000u;
#endif
    unwind_enter(cursor, begin, end);
}

/* Forgets rows where an object was unloaded since they were made. */
void unwind_refresh(struct unwind_room *room);

/* To the caller's frame: 1. 0: there is none; -1: it is not to be found. The cursor is then not to be used any more. */
int unwind_step(struct unwind_room *room);

/* The address that a saved return address means: on aarch64 it may be signed (pointer authentication). */
static inline uintptr_t unwind_plain_address(uintptr_t saved)
{
#if defined(__aarch64__)
    register uintptr_t x30 __asm__("x30") = saved;
    __asm__("hint #7" : "+r"(x30)); /* xpaclri; nothing on processors without */
    return x30;
#else
    return saved;
#endif
}

#endif
