/*
 * A hardware watchpoint of the calling thread on one word of memory (perf_event_open(2), PERF_TYPE_BREAKPOINT). An access
 * to the word costs the program some microseconds, one to its neighbours nothing. No signal is sent: what hit is read
 * from the kernel's ring buffer later. After so many hits as were asked for the word costs nothing more.
 *
 * Accesses by the kernel, by devices, by other threads and other processes are not seen.
 */
#ifndef LAPSCOPE_WATCHPOINT_H
#define LAPSCOPE_WATCHPOINT_H

#include "../base/perf_ring.h"

#include <stdint.h>

enum watchpoint_kind { WATCH_WRITES, WATCH_ANY };

enum { HIT_REGISTERS = 17, HIT_STACK_WORDS = 2, HITS_MOST = 64 };

/* One access. Registers are those behind the access, the stack pointer first; 0 of them where they are not known. */
struct watchpoint_hit {
    uint64_t ns;                              /* CLOCK_MONOTONIC */
    uintptr_t address;                        /* of the instruction behind the one that accessed the word */
    uintptr_t stack[HIT_STACK_WORDS];         /* what the stack pointer points to */
    unsigned stack_words;
    unsigned registers;
    uintptr_t value[HIT_REGISTERS];
};

struct watchpoint {
    struct perf_ring ring;
    unsigned left;           /* hits that the kernel would still take */
    unsigned seen;           /* hits since it was set */
    int is_set;
};

/* Opens one that is not set, for at most `hits` (up to HITS_MOST) at a time. Returns 0, or an errno value. */
int watchpoint_open(struct watchpoint *point, unsigned hits);
/* The descriptor is left alone when it is not the watchpoint's own any more. */
void watchpoint_close(struct watchpoint *point);
/* The same in a child of fork, to whom only the descriptor was handed down. */
void watchpoint_forget(struct watchpoint *point);

/* Watches `bytes` (1, 2, 4 or 8) at an address that is a multiple of them, for at most `hits` accesses. Returns 0 when
 * the watchpoint cannot be set (any more). */
int watchpoint_set(struct watchpoint *point, enum watchpoint_kind kind, const void *word, unsigned bytes, unsigned hits);
void watchpoint_clear(struct watchpoint *point);

/* Whether something hit since the last watchpoint_next() that returned 0. */
static inline int watchpoint_was_hit(const struct watchpoint *point)
{
    return point->is_set && perf_ring_has_more(&point->ring);
}

/* The next hit, in the order of time; 0 when there is none. */
int watchpoint_next(struct watchpoint *point, struct watchpoint_hit *hit);

/* Why none can be had, in words for the user: what watchpoint_open() returned. */
const char *watchpoint_problem(int error);

#endif
