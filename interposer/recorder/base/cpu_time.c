#define _GNU_SOURCE
#include "cpu_time.h"

#include "clock.h"

#include <sys/resource.h>

struct cpu_time cpu_time_now(void)
{
    struct rusage usage;
    uint64_t system_ns = 0;
    if (getrusage(RUSAGE_THREAD, &usage) == 0)
        system_ns = (uint64_t)usage.ru_stime.tv_sec * 1000000000u + (uint64_t)usage.ru_stime.tv_usec * 1000u;
    return (struct cpu_time){clock_nanoseconds(CLOCK_THREAD_CPUTIME_ID), system_ns};
}

struct cpu_time cpu_time_between(struct cpu_time begin, struct cpu_time end)
{
    struct cpu_time spent = {end.total_ns - begin.total_ns, end.system_ns - begin.system_ns};
    if (spent.system_ns > spent.total_ns) /* microseconds against nanoseconds */
        spent.system_ns = spent.total_ns;
    return spent;
}
