#define _GNU_SOURCE
#include "sampler.h"

#include "../base/arena.h"
#include "../base/clock.h"
#include "../base/config.h"
#include "../base/cpu_timer.h"

#include <errno.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

enum {
    RING_BYTES = 64 << 10,   /* of the kernel's ring: 20 s at the default rate */
    NOTES = 4096,            /* likewise */
    SAMPLES_A_PERIOD = 64    /* samples until another period is drawn */
};

static struct sampler samplers[MOST_SAMPLERS];
static enum sampler_clock way;
static uint64_t mean_ns;     /* between two samples */

/* xorshift64*, Vigna 2014 */
static uint64_t draw(struct sampler *sampler)
{
    sampler->random ^= sampler->random >> 12;
    sampler->random ^= sampler->random << 25;
    sampler->random ^= sampler->random >> 27;
    return sampler->random * 0x2545f4914f6cdd1du;
}

/* --- perf's event ------------------------------------------------------------------------------------------------- */

/* What the kernel's ring holds of a sample: PERF_SAMPLE_IP. */
struct record {
    struct perf_event_header header;
    uint64_t ip;
};

struct lost_record {
    struct perf_event_header header;
    uint64_t id, count;
};

/* Within a fifth of the mean: a program that repeats itself must not meet the same phase for ever. The event runs on from one
 * sample to the next, and is set anew only now and then: what follows behind that is not found for a whole period. */
static uint64_t draw_period(struct sampler *sampler)
{
    return mean_ns - mean_ns / 5 + draw(sampler) % (2 * mean_ns / 5 + 1);
}

static int open_perf(struct sampler *sampler)
{
    struct perf_event_attr attributes = {.type = PERF_TYPE_SOFTWARE,
                                         .size = sizeof attributes,
                                         .config = PERF_COUNT_SW_TASK_CLOCK,
                                         .sample_period = draw_period(sampler),
                                         .sample_type = PERF_SAMPLE_IP,
                                         .exclude_kernel = 1,
                                         .exclude_hv = 1};
    return perf_ring_open(&sampler->ring, &attributes, sampler->tid, RING_BYTES);
}

static int next_of_perf(struct sampler *sampler, uintptr_t *address)
{
    struct perf_event_header header;
    uint64_t at;
    int found = 0;
    while (!found && perf_ring_next(&sampler->ring, &header, &at)) {
        struct record record;
        struct lost_record lost;
        if (header.type == PERF_RECORD_SAMPLE && header.size >= sizeof record) {
            perf_ring_copy(&sampler->ring, at, &record, sizeof record);
            *address = (uintptr_t)record.ip;
            found = 1;
        } else if (header.type == PERF_RECORD_LOST && header.size >= sizeof lost) {
            perf_ring_copy(&sampler->ring, at, &lost, sizeof lost);
            sampler->lost += lost.count;
        }
        perf_ring_done(&sampler->ring);
    }
    if (found && --sampler->left == 0) {
        uint64_t period = draw_period(sampler);
        sampler->left = SAMPLES_A_PERIOD;
        if (perf_ring_is_own(&sampler->ring))
            ioctl(sampler->ring.fd, PERF_EVENT_IOC_PERIOD, &period);
    }
    return found;
}

/* --- the timer of a thread's CPU time ----------------------------------------------------------------------------- */

static struct sigaction action_before;

/* inject/timer.c has SIGURG, where it is in use. Both are ignored by programs that do not ask for them. */
static int signal_number(void)
{
    int injects = config.inject == CONFIG_INJECT_TIMER || config.inject == CONFIG_INJECT_AUTO;
    return injects && (!config.inject_signal || config.inject_signal == SIGURG) ? SIGWINCH : SIGURG;
}

static uintptr_t address_in(const ucontext_t *context)
{
#if defined(__x86_64__)
    return (uintptr_t)context->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
    return (uintptr_t)context->uc_mcontext.pc;
#endif
}

/* From half of the mean to one and a half: each interval is drawn where the last one ends, whatever the thread does there. */
static void set_timer(struct sampler *sampler)
{
    cpu_timer_set(sampler->timer, mean_ns / 2 + draw(sampler) % mean_ns);
}

static void on_signal(int number, siginfo_t *info, void *context)
{
    struct sampler *sampler = info->si_code == SI_TIMER ? info->si_value.sival_ptr : NULL;
    int saved_errno = errno;
    (void)number;
    if (sampler < samplers || sampler >= samplers + MOST_SAMPLERS || sampler->clock != SAMPLER_CPUTIME ||
        sampler->tid != (pid_t)syscall(SYS_gettid))
        return;
    set_timer(sampler);
    if (sampler->head - __atomic_load_n(&sampler->read, __ATOMIC_ACQUIRE) < NOTES) {
        sampler->noted[sampler->head % NOTES] = address_in(context);
        __atomic_store_n(&sampler->head, sampler->head + 1, __ATOMIC_RELEASE);
    } else {
        sampler->lost++;
    }
    errno = saved_errno;
}

static int signal_is(int (*wanted)(const struct sigaction *))
{
    struct sigaction now;
    return sigaction(signal_number(), NULL, &now) == 0 && wanted(&now);
}

static int is_free(const struct sigaction *now)
{
    return !(now->sa_flags & SA_SIGINFO) && (now->sa_handler == SIG_DFL || now->sa_handler == SIG_IGN);
}

static int is_ours(const struct sigaction *now)
{
    return now->sa_flags & SA_SIGINFO && now->sa_sigaction == on_signal;
}

/* No signal is held back meanwhile: one of the program's would else be given to a thread that it is not meant for. Its handler
 * may jump out of ours. */
static int install_handler(void)
{
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK | SA_NODEFER};
    return sigaction(signal_number(), &action, &action_before) == 0;
}

/* Then it would lie there, for the thread to find. */
static int is_blocked(void)
{
    sigset_t blocked;
    return pthread_sigmask(SIG_BLOCK, NULL, &blocked) != 0 || sigismember(&blocked, signal_number());
}

/* A handler on an alternate stack that has no room for it would write beyond that. Where there is none it is on the thread's own. */
static int has_room(void)
{
    enum { OURS = 4096 };
    unsigned long least = getauxval(AT_MINSIGSTKSZ); /* what the kernel writes, with all registers */
    stack_t stack;
    return sigaltstack(NULL, &stack) == 0 && (stack.ss_flags & SS_DISABLE || stack.ss_size >= (least ? least : MINSIGSTKSZ) + OURS);
}

/* Nothing is sent to threads that never call MPI: what their stacks have room for is not known. */
static int open_timer(struct sampler *sampler)
{
    if (sampler->tid != (pid_t)syscall(SYS_gettid) || !signal_is(is_ours) || is_blocked() || !has_room())
        return 0;
    if (!sampler->noted)
        sampler->noted = arena_alloc(NOTES * sizeof *sampler->noted);
    return sampler->noted && cpu_timer_create(&sampler->timer, sampler->tid, signal_number(), sampler);
}

/* The thread may have got another alternate stack since. */
static void look_at_stack(struct sampler *sampler)
{
    if (has_room())
        return;
    sampler->is_masked = 1;
    cpu_timer_set(sampler->timer, 0);
}

static int next_of_timer(struct sampler *sampler, uintptr_t *address)
{
    if (sampler->read == __atomic_load_n(&sampler->head, __ATOMIC_ACQUIRE)) {
        look_at_stack(sampler);
        return 0;
    }
    *address = sampler->noted[sampler->read % NOTES];
    __atomic_store_n(&sampler->read, sampler->read + 1, __ATOMIC_RELEASE);
    return 1;
}

void sampler_mask_changes(int how, const sigset_t *set)
{
    if (way != SAMPLER_CPUTIME)
        return;
    int saved_errno = errno, is_named = sigismember(set, signal_number()) == 1;
    pid_t tid = (pid_t)syscall(SYS_gettid);
    for (int i = 0; i < MOST_SAMPLERS; i++) {
        struct sampler *sampler = &samplers[i];
        if (sampler->clock != SAMPLER_CPUTIME || sampler->tid != tid)
            continue;
        if (is_named && how != SIG_UNBLOCK && !sampler->is_masked) {
            sampler->is_masked = 1;
            cpu_timer_set(sampler->timer, 0);
        } else if (sampler->is_masked && how == (is_named ? SIG_UNBLOCK : SIG_SETMASK) && has_room()) {
            sampler->is_masked = 0;
            set_timer(sampler);
        }
    }
    errno = saved_errno;
}

/* ------------------------------------------------------------------------------------------------------------------ */

static struct sampler *free_sampler(void)
{
    for (int i = 0; i < MOST_SAMPLERS; i++)
        if (samplers[i].clock == SAMPLER_NONE)
            return &samplers[i];
    return NULL;
}

struct sampler *sampler_open(pid_t tid)
{
    struct sampler *sampler = free_sampler();
    if (!sampler)
        return NULL;
    *sampler = (struct sampler){.tid = tid, .left = SAMPLES_A_PERIOD, .noted = sampler->noted,
                                .random = (clock_now() ^ (uint64_t)tid << 32) | 1};
    if (way == SAMPLER_PERF ? open_perf(sampler) != 0 : !open_timer(sampler))
        return NULL;
    __atomic_store_n(&sampler->clock, way, __ATOMIC_RELEASE);
    if (way == SAMPLER_CPUTIME)
        set_timer(sampler);
    return sampler;
}

const char *sampler_prepare(unsigned rate_hz)
{
    mean_ns = 1000000000u / rate_hz;
    way = SAMPLER_PERF;
    struct sampler *tried = sampler_open((pid_t)syscall(SYS_gettid));
    if (!tried) {
        if (!cpu_timer_is_silent())
            return "perf_event_open has no event for it here, and this kernel's timers of CPU time could cut system calls short";
        if (!signal_is(is_free))
            return "perf_event_open has no event for it here, and the program uses the signal of the timer in its place itself";
        if (!install_handler())
            return "perf_event_open has no event for it here, and the signal of the timer in its place cannot be caught";
        way = SAMPLER_CPUTIME;
        tried = sampler_open((pid_t)syscall(SYS_gettid));
    }
    if (!tried)
        return "perf_event_open has no event for it here, and no timer of CPU time is to be had, its signal is blocked, or the "
               "alternate stack for signals is too small for it";
    sampler_close(tried);
    return NULL;
}

int sampler_uses_signal(void)
{
    return way == SAMPLER_CPUTIME;
}

void sampler_close(struct sampler *sampler)
{
    if (sampler->clock == SAMPLER_PERF)
        perf_ring_close(&sampler->ring);
    else if (sampler->clock == SAMPLER_CPUTIME)
        timer_delete(sampler->timer);
    __atomic_store_n(&sampler->clock, SAMPLER_NONE, __ATOMIC_RELEASE);
}

void sampler_forget_all(void)
{
    for (int i = 0; i < MOST_SAMPLERS; i++) {
        if (samplers[i].clock == SAMPLER_PERF)
            perf_ring_forget(&samplers[i].ring);
        samplers[i].clock = SAMPLER_NONE;
    }
}

void sampler_end(void)
{
    if (way == SAMPLER_CPUTIME && signal_is(is_ours))
        sigaction(signal_number(), &action_before, NULL);
}

int sampler_next(struct sampler *sampler, uintptr_t *address)
{
    return sampler->clock == SAMPLER_PERF ? next_of_perf(sampler, address)
           : sampler->clock == SAMPLER_CPUTIME ? next_of_timer(sampler, address)
                                               : 0;
}
