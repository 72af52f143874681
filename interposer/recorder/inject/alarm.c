#define _GNU_SOURCE
#include "alarm.h"

#include "../base/cpu_timer.h"
#include "../base/descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* --- perf's event of a thread's running time ---------------------------------------------------------------------- */

/* exclude_kernel: rings only where the thread was interrupted in its own code (perf_event_open(2)). */
static int open_event(void)
{
    struct perf_event_attr attributes = {.type = PERF_TYPE_SOFTWARE,
                                         .size = sizeof attributes,
                                         .config = PERF_COUNT_SW_TASK_CLOCK,
                                         .sample_period = 1000000,
                                         .disabled = 1,
                                         .exclude_kernel = 1,
                                         .exclude_hv = 1};
    return descriptor_move((int)syscall(SYS_perf_event_open, &attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC));
}

static int open_perf(struct alarm *alarm)
{
    struct f_owner_ex owner = {F_OWNER_TID, alarm->owner};
    int fd = open_event();
    if (fd < 0)
        return 0;
    if (fcntl(fd, F_SETFL, O_ASYNC | O_NONBLOCK) != 0 || fcntl(fd, F_SETSIG, alarm->signal) != 0 ||
        fcntl(fd, F_SETOWN_EX, &owner) != 0) {
        close(fd);
        return 0;
    }
    alarm->fd = fd;
    alarm->clock = ALARM_PERF;
    return 1;
}

/* The application may have closed the number, and have a file of its own under it. */
static int is_event(const struct alarm *alarm)
{
    struct f_owner_ex owner;
    return fcntl(alarm->fd, F_GETSIG) == alarm->signal && fcntl(alarm->fd, F_GETOWN_EX, &owner) == 0 && owner.pid == alarm->owner;
}

static int set_perf(struct alarm *alarm, uint64_t ns)
{
    if (alarm->period_ns != ns && ioctl(alarm->fd, PERF_EVENT_IOC_PERIOD, &ns) != 0)
        return 0;
    alarm->period_ns = ns;
    return ioctl(alarm->fd, PERF_EVENT_IOC_REFRESH, 1) == 0; /* enabled for one more ring */
}

/* --- the kernel's timer of a thread's CPU time -------------------------------------------------------------------- */

static int open_cputime(struct alarm *alarm)
{
    if (!cpu_timer_create(&alarm->timer, alarm->owner, alarm->signal, alarm))
        return 0;
    alarm->clock = ALARM_CPUTIME;
    return 1;
}

/* ------------------------------------------------------------------------------------------------------------------ */

const char *alarm_open(struct alarm *alarm, enum alarm_clock wanted, int signal)
{
    *alarm = (struct alarm){.signal = signal, .fd = -1, .owner = (pid_t)syscall(SYS_gettid)};
    if (wanted != ALARM_CPUTIME && open_perf(alarm))
        return NULL;
    if (wanted == ALARM_PERF)
        return "perf_event_open is not allowed here (kernel.perf_event_paranoid above 2, or a container); "
               "LAPSCOPE_INJECT_CLOCK=cputime or LAPSCOPE_INJECT=thread do without it";
    if (!cpu_timer_is_silent())
        return "perf_event_open is not allowed here, and this kernel's timers of CPU time could cut system calls short; "
               "LAPSCOPE_INJECT=thread does without them";
    return open_cputime(alarm) ? NULL : "no timer of CPU time to be had; LAPSCOPE_INJECT=thread does without one";
}

/* One that is set must not ring where nobody knows it any more. */
void alarm_close(struct alarm *alarm)
{
    int is_there = alarm->clock == ALARM_CPUTIME || (alarm->clock == ALARM_PERF && is_event(alarm));
    if (is_there)
        alarm_take_back(alarm);
    enum alarm_clock clock = __atomic_exchange_n(&alarm->clock, ALARM_NONE, __ATOMIC_ACQ_REL);
    if (clock == ALARM_PERF && is_there)
        close(alarm->fd);
    else if (clock == ALARM_CPUTIME)
        timer_delete(alarm->timer);
    alarm->owner = 0;
}

int alarm_set(struct alarm *alarm, uint64_t ns)
{
    int saved_errno = errno;
    int set = alarm->clock == ALARM_PERF      ? set_perf(alarm, ns)
              : alarm->clock == ALARM_CPUTIME ? cpu_timer_set(alarm->timer, ns)
                                              : 0;
    errno = saved_errno;
    return set;
}

void alarm_take_back(struct alarm *alarm)
{
    int saved_errno = errno;
    if (alarm->clock == ALARM_PERF)
        ioctl(alarm->fd, PERF_EVENT_IOC_DISABLE, 0);
    else if (alarm->clock == ALARM_CPUTIME)
        cpu_timer_set(alarm->timer, 0);
    errno = saved_errno;
}

int alarm_rang(const struct alarm *alarm, const siginfo_t *info)
{
    if (alarm->clock == ALARM_PERF)
        return (info->si_code == POLL_IN || info->si_code == POLL_HUP) && info->si_fd == alarm->fd;
    return alarm->clock == ALARM_CPUTIME && info->si_code == SI_TIMER && info->si_value.sival_ptr == alarm;
}

const char *alarm_clock_name(enum alarm_clock clock)
{
    return clock == ALARM_PERF ? "perf" : clock == ALARM_CPUTIME ? "cputime" : "";
}
