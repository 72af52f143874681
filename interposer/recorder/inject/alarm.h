/*
 * An alarm of one thread: a signal once the thread has run for a while, in its own code and not in the kernel, so that
 * no system call is cut short by it. It rings once for each time it is set: a real-time signal that cannot be queued
 * would become a SIGIO, which ends a program that does not expect it.
 */
#ifndef LAPSCOPE_ALARM_H
#define LAPSCOPE_ALARM_H

#include "../base/config.h"

#include <signal.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

enum alarm_clock {
    ALARM_NONE = CONFIG_INJECT_CLOCK_AUTO,
    ALARM_PERF = CONFIG_INJECT_CLOCK_PERF,
    ALARM_CPUTIME = CONFIG_INJECT_CLOCK_CPUTIME
};

struct alarm {
    enum alarm_clock clock;
    int signal;
    int fd;                  /* perf's event */
    pid_t owner;             /* the thread that it is of; 0: it is not open */
    timer_t timer;
    uint64_t period_ns;      /* perf's, as last set */
};

/* Makes an alarm of the calling thread. `wanted`: ALARM_NONE takes what there is. Returns NULL, or why there is none.
 */
const char *alarm_open(struct alarm *alarm, enum alarm_clock wanted, int signal);
/* By whichever thread, once. */
void alarm_close(struct alarm *alarm);

/* Rings in so many nanoseconds of the thread's running time. For signal handlers too. Returns 0 when the alarm is gone:
 * the program has closed its file descriptor. */
int alarm_set(struct alarm *alarm, uint64_t ns);

/* It does not ring any more; if it has, the signal is delivered before this returns, unless it is blocked. For signal handlers too.
 */
void alarm_take_back(struct alarm *alarm);

/* Whether a signal is this alarm's. */
int alarm_rang(const struct alarm *alarm, const siginfo_t *info);

const char *alarm_clock_name(enum alarm_clock clock);

#endif
