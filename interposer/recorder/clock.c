#include "clock.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

int clock_is_tsc __attribute__((visibility("hidden")));

static int tsc_is_invariant(void)
{
#if defined(__x86_64__)
    unsigned a, b, c, d = 0;
    return __get_cpuid(0x80000007, &a, &b, &c, &d) && (d & (1u << 8)); /* AMD64 APM vol. 3, Intel SDM vol. 3: invariant TSC */
#elif defined(__aarch64__)
    return 1; /* the generic timer runs at a constant rate on all cores */
#else
    return 0;
#endif
}

int clock_select(enum clock_choice choice)
{
    clock_is_tsc = choice != CLOCK_CHOICE_MONOTONIC && tsc_is_invariant();
    return choice != CLOCK_CHOICE_TSC || clock_is_tsc;
}

struct spool_clock_pair clock_pair(void)
{
    struct spool_clock_pair best = {0, 0};
    uint64_t narrowest = UINT64_MAX;
    for (int i = 0; i < 5; i++) { /* an interrupt between two readings makes the bracket wide: keep the narrowest */
        uint64_t before = clock_now();
        uint64_t ns = clock_nanoseconds(CLOCK_MONOTONIC);
        uint64_t after = clock_now();
        if (after - before < narrowest) {
            narrowest = after - before;
            best = (struct spool_clock_pair){clock_is_tsc ? before + narrowest / 2 : ns, (int64_t)ns};
        }
    }
    return best;
}
