#define _GNU_SOURCE
#include "cpu_timer.h"

#include <signal.h>
#include <stdio.h>
#include <sys/utsname.h>

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

/* From Linux 5.11 on such timers are handled on the way back to the program: before, they could cut a system call
 * short. */
int cpu_timer_is_silent(void)
{
    struct utsname system;
    int major = 0, minor = 0;
    return uname(&system) == 0 && sscanf(system.release, "%d.%d", &major, &minor) == 2 &&
           (major > 5 || (major == 5 && minor >= 11));
}

/* The kernel's number for the clock of a thread's scheduled time (include/linux/posix-timers.h). */
static clockid_t clock_of(pid_t tid)
{
    enum { SCHEDULED = 2, OF_A_THREAD = 4 };
    return (clockid_t)(~(unsigned)tid << 3 | SCHEDULED | OF_A_THREAD);
}

int cpu_timer_create(timer_t *timer, pid_t tid, int signal, void *value)
{
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = signal, .sigev_value.sival_ptr = value};
    event.sigev_notify_thread_id = tid;
    return timer_create(clock_of(tid), &event, timer) == 0;
}

int cpu_timer_set(timer_t timer, uint64_t ns)
{
    struct itimerspec once = {.it_value = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)}};
    return timer_settime(timer, 0, &once, NULL) == 0;
}
