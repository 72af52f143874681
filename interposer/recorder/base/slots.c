#include "slots.h"

#include "clock.h"
#include "config.h"
#include "intern.h"

#include <time.h>

struct slots slots_of(uint64_t seed)
{
    return (struct slots){config.inject_ab ? (uint64_t)config.inject_ab_ms * 1000000u : 0, seed};
}

/* Of two neighbouring slots one is on; which, all ranks find alike, as they have the same time and the same seed. */
int slots_are_on(const struct slots *slots)
{
    if (!slots->length_ns)
        return 1;
    uint64_t slot = clock_nanoseconds(CLOCK_REALTIME) / slots->length_ns, pair = slots->seed ^ slot >> 1;
    return (intern_hash(&pair, sizeof pair) >> 40 & 1) == (slot & 1);
}
