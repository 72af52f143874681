/*
 * CPU time of the calling thread.
 *
 * Off by default: it takes two system calls of 250 to 500 ns before and after each call, many times what all the rest
 * costs. The sum is the thread's clock, which counts nanoseconds; the kernel's share of it is from getrusage.
 */
#ifndef LAPSCOPE_CPU_TIME_H
#define LAPSCOPE_CPU_TIME_H

#include <stdint.h>

struct cpu_time {
    uint64_t total_ns;       /* as exact as the scheduler's clock */
    uint64_t system_ns;      /* of it in the kernel: to the microsecond, and on kernels that sample it only right in sums */
};

struct cpu_time cpu_time_now(void);

/* From `begin` to `end`; the system time no more than the total. */
struct cpu_time cpu_time_between(struct cpu_time begin, struct cpu_time end);

#endif
