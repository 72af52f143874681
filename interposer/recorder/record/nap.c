#include "nap.h"

#include "../base/clock.h"
#include "thread.h"

enum {
    LOOK_NS = 10000000,     /* a look's length */
    NAP_LOOKS = 20,         /* a nap's, in looks */
    MANY_CALLS = 200        /* in a look; below that looking costs less than a thousandth of the time */
};

unsigned nap_calls;

static struct {
    int is_wanted;
    uint64_t look;          /* ticks */
    uint64_t until;         /* ticks; of the nap under way */
    unsigned count;         /* naps so far */
} nap;

void nap_start(void)
{
    nap.look = (uint64_t)(LOOK_NS * spool_header()->nominal_ticks_per_ns);
    nap.is_wanted = 1;
}

static void begin(uint64_t now)
{
    enum recorder_state awake = RECORDER_ON;
    nap.until = now + NAP_LOOKS * nap.look;
    __atomic_fetch_add(&nap.count, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&nap_calls, NAP_CALLS, __ATOMIC_RELAXED);
    __atomic_compare_exchange_n(&recorder_state, &awake, RECORDER_ASLEEP, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

void nap_look(struct thread *t, uint64_t now)
{
    unsigned count = __atomic_load_n(&nap.count, __ATOMIC_RELAXED);
    int has_looked = t->look.nap == count && t->look.began; /* since the last nap, and for as long as a look is */
    uint64_t calls = t->state->calls - t->look.calls;
    if (!nap.is_wanted || (has_looked && now - t->look.began < nap.look))
        return;
    t->next_facts = now + nap.look;
    t->look.nap = count;
    t->look.began = now;
    t->look.calls = t->state->calls;
    if (has_looked && calls > MANY_CALLS && !(thread_hooks.is_busy && thread_hooks.is_busy()))
        begin(now);
}

int nap_is_over(void)
{
    enum recorder_state asleep = RECORDER_ASLEEP;
    __atomic_store_n(&nap_calls, NAP_CALLS, __ATOMIC_RELAXED);
    if (clock_now() < __atomic_load_n(&nap.until, __ATOMIC_RELAXED))
        return 0;
    return __atomic_compare_exchange_n(&recorder_state, &asleep, RECORDER_ON, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}
