/* What tests may cost, and have cost. */
#include "injector.h"

#include "../base/config.h"

enum { PERCENT = 100 };

uint64_t inject_ticks(uint64_t ns)
{
    return clock_ticks(ns, spool_header()->nominal_ticks_per_ns);
}

uint64_t inject_ns(uint64_t ticks)
{
    return clock_ns(ticks, spool_header()->nominal_ticks_per_ns);
}

uint64_t inject_over_budget(uint64_t now)
{
    uint64_t spent = __atomic_load_n(&injection.spent, __ATOMIC_RELAXED);
    uint64_t needed = spent * PERCENT / (uint64_t)config.inject_budget;
    uint64_t began = __atomic_load_n(&injection.began, __ATOMIC_RELAXED), elapsed = now > began ? now - began : 0;
    return needed > elapsed ? needed - elapsed : 0;
}

void inject_starved(uint64_t ticks)
{
    __atomic_fetch_add(&injection.began, ticks, __ATOMIC_RELAXED);
}

void inject_spent_is(uint64_t cost, uint64_t of, uint64_t now)
{
    uint64_t others = __atomic_load_n(&injection.spent, __ATOMIC_RELAXED) - cost;
    uint64_t began = now - of - others * PERCENT / (uint64_t)config.inject_budget;
    __atomic_store_n(&injection.began, began, __ATOMIC_RELAXED);
}
