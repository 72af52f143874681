/* The kernel's timer of a thread's CPU time, which sends that thread a signal. */
#ifndef LAPSCOPE_CPU_TIMER_H
#define LAPSCOPE_CPU_TIMER_H

#include <stdint.h>
#include <sys/types.h>
#include <time.h>

/* Whether it cuts no system call short here. */
int cpu_timer_is_silent(void);

/* Of the thread `tid` of this process; `value` comes with the signal (si_value). Returns 0 when there is none to be had. */
int cpu_timer_create(timer_t *timer, pid_t tid, int signal, void *value);

/* Rings once, in so many nanoseconds of the thread's time; 0: not any more. For signal handlers too. */
int cpu_timer_set(timer_t timer, uint64_t ns);

#endif
