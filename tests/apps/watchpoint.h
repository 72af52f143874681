/* A watchpoint of the processor on one word of this thread, as debuggers and lapscope use them. */
#ifndef WATCHPOINT_H
#define WATCHPOINT_H

#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MOST_WATCHPOINTS = 16 }; /* more than a processor has */

/* A descriptor whose count is that of the writes; negative where it is refused. */
static inline int watch_writes(volatile int64_t *word)
{
    struct perf_event_attr attr;
    memset(&attr, 0, sizeof attr);
    attr.size = sizeof attr;
    attr.type = PERF_TYPE_BREAKPOINT;
    attr.bp_type = HW_BREAKPOINT_W;
    attr.bp_addr = (uintptr_t)word;
    attr.bp_len = HW_BREAKPOINT_LEN_8;
    attr.exclude_kernel = attr.exclude_hv = 1;
    return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
}

/* Watches as many of the words as it can, up to `wanted`; returns how many. */
static inline int watch_most(volatile int64_t *words, int wanted, int *events)
{
    int count = 0;
    while (count < wanted && count < MOST_WATCHPOINTS && (events[count] = watch_writes(&words[count])) >= 0)
        count++;
    return count;
}

#endif
