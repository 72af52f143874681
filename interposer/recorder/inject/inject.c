#include "injector.h"

#include "../base/arena.h"
#include "../base/clock.h"
#include "../base/config.h"
#include "../base/intern.h"
#include "../base/log.h"
#include "../record/callsite.h"
#include "../record/path.h"
#include "../record/tally.h"
#include "../sends/sends.h"
#include "auto.h"
#include "policy.h"
#include "progress.h"
#include "safe_point.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>

enum { LONGEST_TEST_NS = 100000000, LONG_AGO_NS = 1000000000 };

/* --- around calls ------------------------------------------------------------------------------------------------- */

/* LAPSCOPE_INJECT=calls: the application has called MPI, which may do whatever it does in any call. */
static void test_on_entry(struct injector *injector)
{
    uint64_t now = clock_now();
    if (!injection.is_on || now < injector->next_test || !inject_pending(injector) || inject_over_budget(now))
        return;
    inject_test_here(injector);
    injector->next_test = clock_now() + inject_interval(injector);
}

static void enter_mpi(struct injector *injector)
{
    injector->in_mpi = 1;
    injector->reduces = injector->will_reduce;
    injector->will_reduce = 0;
    if (UNLIKELY(injection.is_gated)) {
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
        inject_wait_for_testers();
    }
    if (UNLIKELY(injection.is_auto))
        auto_entered(injector);
    if (injection.mode == INJECT_CALLS)
        test_on_entry(injector);
}

/* Copies of sends are not over with the application's request. Each call asks after some of them, and while any are under way there
 * is something to test for; for what site is as good as unknown, so tests count as of the one posted last, once there is one. */
static __attribute__((noinline)) void look_after_copies(struct injector *injector)
{
    unsigned serves = injection.is_on && injector->site && sends_under_way() && slots_are_on(&injection.slots);
    if (serves == injector->serves_copies)
        return;
    __atomic_store_n(&injector->serves_copies, serves, __ATOMIC_SEQ_CST);
    if (!serves)
        return;
    injector->next_test = clock_now() + injection.interval;
    if (injection.mode == INJECT_THREAD)
        inject_helper_window();
}

static void leave_mpi(struct injector *injector)
{
    if (UNLIKELY(copies_under_way() || injector->serves_copies))
        look_after_copies(injector);
    injector->in_mpi = 0;
    if (UNLIKELY(injection.is_auto))
        auto_left(injector);
    if (injection.mode == INJECT_TIMER && inject_pending(injector))
        inject_timer_window(injector);
}

/* --- windows ------------------------------------------------------------------------------------------------------ */

static struct inject_site *new_site(struct injector *injector, const struct operation *operation, uint64_t hash,
                                    uintptr_t caller)
{
    struct inject_site *site = arena_alloc(sizeof *site);
    struct spool_tally *place = tally_find(injector->thread, (enum call)operation->key.call, operation->key.path, 0,
                                           SPOOL_TALLY_INJECTION);
    if (!site || !place)
        return NULL;
    *site = (struct inject_site){.hash = hash, .key = {operation->key.path, operation->key.call},
                                 .sums = (struct spool_injection *)place};
    uintptr_t path[PATH_MOST_FRAMES];
    unsigned count = path_frames(operation->key.path, path);
    if (!count) /* without call paths there are no callers to tell apart */
        path[0] = caller, count = 1;
    site->sums->is_off = (uint8_t)inject_policy_is_off(call_names[operation->key.call], path, count);
    return site;
}

static struct inject_site *site_of(struct injector *injector, struct operation *operation, uintptr_t caller)
{
    if (LIKELY(operation->inject_site != NULL))
        return operation->inject_site;
    struct inject_site key = {.key = {operation->key.path, operation->key.call}};
    uint64_t hash = intern_hash(&key.key, sizeof key.key);
    void **slot = intern_find(&injector->sites, hash, &key.key, sizeof key.key);
    if (!slot)
        return NULL;
    if (!*slot) {
        *slot = new_site(injector, operation, hash, caller);
        injector->sites.count += *slot != NULL;
    }
    return operation->inject_site = *slot;
}

static int is_large(const struct operation *operation)
{
    const struct operation *receive = operation->related;
    uint64_t bytes = operation->key.bytes;
    if (receive && receive->key.kind == SPOOL_RECV && receive->key.bytes > bytes)
        bytes = receive->key.bytes;
    return bytes >= (uint64_t)config.inject_min_bytes && operation->key.kind != SPOOL_GENERALIZED &&
           operation->key.peer != SPOOL_PROC_NULL;
}

/* Whether a request of a slot that is on had something done for it: not in slots that auto keeps for none of its modes. */
static int is_served(void)
{
    return !(injection.is_auto && injection.mode == INJECT_OFF);
}

static void open_window(struct injector *injector, struct inject_site *site)
{
    __atomic_store_n(&injector->site, site, __ATOMIC_RELEASE);
    site->sums->requests += is_served();
    /* and then looks whether the helper lies down, which says so and then looks for windows */
    if (__atomic_fetch_add(&injector->pending, 1, __ATOMIC_SEQ_CST) == 0) {
        site->pace[injection.arm].level -= site->pace[injection.arm].level > 0;
        injector->next_test = clock_now() + injection.interval;
    }
    if (injection.mode == INJECT_TIMER)
        inject_timer_window(injector);
    else if (injection.mode == INJECT_THREAD)
        inject_helper_window();
}

static void request_made(struct injector *injector, struct spool_live *live)
{
    if (injector->reduces)
        live->flags |= SPOOL_LIVE_REDUCES;
}

static void request_posted(struct injector *injector, struct spool_live *live, struct operation *operation, uintptr_t caller)
{
    request_made(injector, live);
    if (live->flags & SPOOL_LIVE_REDUCES)
        __atomic_fetch_add(&injection.reductions, 1, __ATOMIC_ACQ_REL);
    if (!injection.is_on || !is_large(operation))
        return;
    __atomic_store_n(&injection.last_large, live->post_begin, __ATOMIC_RELAXED);
    struct inject_site *site = site_of(injector, operation, caller);
    if (!site || site->sums->is_off)
        return;
    int is_on = injection.is_auto ? auto_posted(injector, site, operation) : slots_are_on(&injection.slots);
    live->injection_arm |= (uint8_t)(1 + (is_on && is_served()));
    if (!is_on)
        return;
    live->flags |= SPOOL_LIVE_INJECTED;
    open_window(injector, site);
}

static void request_ended(struct spool_live *live)
{
    if (live->flags & SPOOL_LIVE_REDUCES)
        __atomic_fetch_sub(&injection.reductions, 1, __ATOMIC_ACQ_REL);
    if (live->flags & SPOOL_LIVE_INJECTED)
        __atomic_fetch_sub(&threads[live->thread]->injector->pending, 1, __ATOMIC_ACQ_REL);
    live->flags &= (uint8_t)(live->flags & SPOOL_LIVE_PERSISTENT ? ~SPOOL_LIVE_INJECTED
                                                                 : ~(SPOOL_LIVE_INJECTED | SPOOL_LIVE_REDUCES));
}

/* Programs that post a large request now and then are to be seen to do so. */
static int is_busy(void)
{
    uint64_t last = __atomic_load_n(&injection.last_large, __ATOMIC_RELAXED), now = clock_now();
    unsigned count = __atomic_load_n(&thread_count, __ATOMIC_ACQUIRE);
    for (unsigned i = 0; i < count; i++)
        if (threads[i]->injector && inject_pending(threads[i]->injector))
            return 1;
    return last && now - last < inject_ticks(LONG_AGO_NS);
}

/* A function of the application's must not run in a signal handler, nor beside the application: while it might be
 * called, tests rest. From the first time on nobody tests while a thread is on its way into MPI, where such a reduction
 * may begin. */
void inject_reduces(struct injector *injector, MPI_Op operation)
{
    injector->will_reduce = config.inject != INJECT_CALLS && !mpi_op_is_predefined(operation);
    if (injector->will_reduce && (recorder_multiple || injection.mode == INJECT_THREAD))
        inject_close_gate();
    if (injector->will_reduce && injection.is_auto)
        auto_stays_awake();
}

/* --- the start and the end ---------------------------------------------------------------------------------------- */

/* As schema/spool.h has it. In slots nothing may be injected, and only sends be copied (LAPSCOPE_BUFFER_SENDS): what requests then
 * tell is what that gains. */
static void write_fact(struct thread *t)
{
    const char *mode = config.inject == CONFIG_INJECT_OFF ? "sends" : inject_mode_name((enum inject_mode)config.inject);
    char text[1024], slot[24] = "", test[24] = "", interrupt[24] = "", check[24] = "";
    if (injection.slots.length_ns)
        snprintf(slot, sizeof slot, "%llu", (unsigned long long)injection.slots.length_ns);
    if (progress_idle_is_known())
        snprintf(test, sizeof test, "%llu", (unsigned long long)inject_ns(progress_idle()));
    if (injection.interrupt)
        snprintf(interrupt, sizeof interrupt, "%llu", (unsigned long long)inject_ns(injection.interrupt));
    if (injection.check)
        snprintf(check, sizeof check, "%llu", (unsigned long long)injection.check);
    snprintf(text, sizeof text, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%llu", mode,
             injection.problem ? injection.problem : "", alarm_clock_name(injection.clock), slot,
             test, interrupt, check,
             (unsigned long long)inject_ns(__atomic_load_n(&injection.spent, __ATOMIC_RELAXED)));
    spool_define_meta(&t->stream, "injector", text);
}

static struct injector *create_injector(struct thread *t)
{
    struct injector *injector = arena_alloc(sizeof *injector);
    if (!injector)
        return NULL;
    injector->thread = t;
    if (t->number > 0 && !recorder_multiple) /* MPI_THREAD_SERIALIZED: not two of them inside MPI at once */
        inject_close_gate();
    return injector;
}

/* What it has posted may still be pending, for other threads to end. */
static void thread_ended(struct injector *injector)
{
    inject_timer_close(injector);
    injector->in_mpi = injector->will_reduce = 0;
    injector->computes_since = 0;
}

static const char *prepare(struct injector *injector)
{
    const char *why = inject_policy_read(config.inject_policy, log_first_on_node());
    if (config.inject == CONFIG_INJECT_OFF)
        return why;
    if (!why)
        why = progress_open();
    if (!why && !injection.is_auto)
        why = inject_prepare_mode(injector, injection.mode);
    return why;
}

static void say_problem(void)
{
    if (injection.problem && log_first_on_node())
        log_line("LAPSCOPE_INJECT=%s injects nothing: %s", inject_mode_name((enum inject_mode)config.inject), injection.problem);
}

void inject_cannot(struct thread *t, const char *why)
{
    if (config.inject == INJECT_OFF)
        return;
    injection.problem = why;
    say_problem();
    write_fact(t);
}

void inject_start(struct thread *t, const char *job, inject_run_directory *run)
{
    if (config.inject == INJECT_OFF && !(config.inject_ab && config.buffer_sends))
        return;
    int saved_errno = errno;
    uint64_t cpu_began = clock_nanoseconds(CLOCK_THREAD_CPUTIME_ID);
    int is_auto = config.inject == CONFIG_INJECT_AUTO;
    injection = (struct injection){.mode = is_auto ? INJECT_OFF : (enum inject_mode)config.inject,
                                   .is_auto = is_auto,
                                   .began = clock_now(),
                                   .interval = inject_ticks((uint64_t)config.inject_interval_us * 1000),
                                   .slots = slots_of(text_hash(job, strlen(job)))};
    t->injector = create_injector(t);
    thread_hooks = (struct thread_hooks){create_injector, thread_ended,  enter_mpi, leave_mpi,     request_made,
                                         request_posted,  request_ended, is_busy,   inject_starved};
    const char *why = t->injector ? prepare(t->injector) : "no memory";
    injection.is_on = !why;
    injection.problem = why;
    inject_spend(inject_ticks(clock_nanoseconds(CLOCK_THREAD_CPUTIME_ID) - cpu_began));
    say_problem();
    if (t->injector && is_auto && !why)
        auto_start(job, run);
    else if (t->injector)
        stamps_are_plain = 0;
    write_fact(t);
    errno = saved_errno;
}

static void switch_off(void)
{
    __atomic_store_n(&injection.is_on, 0, __ATOMIC_SEQ_CST);
}

/* Not for long: it may be a test that the process ends in. */
void inject_abandon(void)
{
    uint64_t begin = clock_nanoseconds(CLOCK_MONOTONIC);
    switch_off();
    auto_end(NULL);
    while (__atomic_load_n(&injection.testers, __ATOMIC_SEQ_CST) &&
           clock_nanoseconds(CLOCK_MONOTONIC) - begin < LONGEST_TEST_NS)
        sched_yield();
}

void inject_stop(struct thread *t)
{
    if (config.inject == INJECT_OFF)
        return;
    int saved_errno = errno;
    switch_off();
    inject_helper_end();
    if (inject_uses_timer())
        inject_timer_end();
    inject_wait_for_testers();
    progress_close();
    write_fact(t);
    auto_end(t);
    errno = saved_errno;
}
