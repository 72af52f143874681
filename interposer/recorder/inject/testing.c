/* Whether tests may be made, and what they do: the same for whoever makes them. */
#include "injector.h"

#include "../base/clock.h"
#include "../record/entry.h"
#include "progress.h"

#include <sched.h>

enum { SPINS = 1000 };

struct injection injection __attribute__((visibility("hidden")));

/* --- giving up ---------------------------------------------------------------------------------------------------- */

void inject_fail(const char *problem)
{
    injection.problem = problem;
    __atomic_store_n(&injection.is_on, 0, __ATOMIC_SEQ_CST);
}

void inject_lose(enum inject_mode mode, const char *problem)
{
    if (!injection.is_auto) {
        inject_fail(problem);
        return;
    }
    injection.problems[mode] = problem;
    __atomic_fetch_or(&injection.lost, 1u << mode, __ATOMIC_RELEASE);
    if (injection.mode == mode)
        injection.mode = INJECT_OFF;
}

/* --- one thread tests, others enter MPI ------------------------------------------------------------------------------
 * Either sees the other: a tester says so and then looks who is inside MPI, who enters MPI says so (enter()) and then
 * looks for testers (Dekker). */

static int others_are_inside(const struct thread *self)
{
    unsigned count = __atomic_load_n(&thread_count, __ATOMIC_ACQUIRE);
    for (unsigned i = 0; i < count; i++)
        if (threads[i] != self && __atomic_load_n(&threads[i]->inside, __ATOMIC_ACQUIRE))
            return 1;
    return 0;
}

int inject_may_test(const struct thread *self)
{
    __atomic_fetch_add(&injection.testers, 1, __ATOMIC_SEQ_CST);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (__atomic_load_n(&injection.is_on, __ATOMIC_SEQ_CST) && recorder_state == RECORDER_ON &&
        !__atomic_load_n(&injection.reductions, __ATOMIC_ACQUIRE) &&
        !(__atomic_load_n(&injection.is_gated, __ATOMIC_SEQ_CST) && others_are_inside(self)))
        return 1;
    inject_tested();
    return 0;
}

void inject_tested(void)
{
    __atomic_fetch_sub(&injection.testers, 1, __ATOMIC_SEQ_CST);
}

void inject_wait_for_testers(void)
{
    for (unsigned i = 0; __atomic_load_n(&injection.testers, __ATOMIC_SEQ_CST); i++)
        if (i > SPINS)
            sched_yield();
}

void inject_close_gate(void)
{
    __atomic_store_n(&injection.is_gated, 1, __ATOMIC_SEQ_CST);
}

/* --- testing ------------------------------------------------------------------------------------------------------ */

/* The interval doubles, up to sixteen times, where a site's tests find nothing, and is back at once when one does. */
static void adapt(struct inject_site *site, int found)
{
    unsigned *level = &site->pace[injection.arm].level, *idle = &site->pace[injection.arm].idle;
    if (found) {
        *level = *idle = 0;
    } else if (++*idle == 2) {
        *idle = 0;
        *level += *level < MOST_LEVELS;
    }
}

struct tested inject_test(struct injector *injector)
{
    struct inject_site *site = injector->site;
    struct spool_injection *sums = site->sums;
    struct tested total = {0, 0};
    int found = 0, again = 0;
    do {
        struct progress progress = progress_test(again);
        if (progress.failed) {
            inject_fail("MPI returned an error to a test");
            break;
        }
        again = progress.found;
        found |= again;
        total.used += progress.used;
        total.passed += progress.passed;
        sums->tests++;
        sums->test_ticks += progress.used;
        sums->found += (uint64_t)again;
        sums->idle_ticks += again ? 0 : progress.used;
        inject_spend(again ? progress_idle() : progress.used);
    } while (again && total.passed < injection.interval && inject_pending(injector));
    adapt(site, found);
    return total;
}

uint64_t inject_test_here(struct injector *injector)
{
    struct thread *self = thread_step_aside();
    uint64_t passed = inject_test(injector).passed;
    current_thread = self;
    self->state->mpi_ticks += passed;
    return passed;
}
