#include "clock.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

/* Spools are read with rates of more than 0.01 ticks a nanosecond (spool/definitions.c). */
enum { SLOWEST_HZ = 10000000 };

int clock_is_tsc __attribute__((visibility("hidden")));

int clock_lists_tsc(const char *sources)
{
    for (const char *at = sources; (at = strstr(at, "tsc")); at += 3)
        if ((at == sources || at[-1] == ' ') && (at[3] == ' ' || at[3] == '\n' || !at[3]))
            return 1;
    return 0;
}

#if defined(__x86_64__)
/* Where this cannot be read nothing speaks against it. */
static int kernel_rejects_tsc(void)
{
    char sources[256] = "";
    int fd = open("/sys/devices/system/clocksource/clocksource0/available_clocksource", O_RDONLY | O_CLOEXEC);
    ssize_t bytes = fd < 0 ? -1 : read(fd, sources, sizeof sources - 1);
    if (fd >= 0)
        close(fd);
    return bytes > 0 && !clock_lists_tsc(sources);
}
#endif

static int tsc_is_invariant(void)
{
#if defined(__x86_64__)
    unsigned a, b, c, d = 0;
    return __get_cpuid(0x80000007, &a, &b, &c, &d) && (d & (1u << 8)) && /* AMD64 APM, Intel SDM vol. 3: invariant TSC */
           !kernel_rejects_tsc();
#elif defined(__aarch64__)
    /* the generic timer runs at a constant rate on all cores */
    uint64_t ticks_per_s;
    __asm__("mrs %0, cntfrq_el0" : "=r"(ticks_per_s));
    return ticks_per_s > SLOWEST_HZ;
#else
    return 0;
#endif
}

int clock_select(enum config_choice choice)
{
    clock_is_tsc = choice != CONFIG_CLOCK_MONOTONIC && tsc_is_invariant();
    return choice != CONFIG_CLOCK_TSC || clock_is_tsc;
}

/* --- a clock of a test's ------------------------------------------------------------------------------------------ */

static struct {
    struct clock_shift shift;
    int64_t start_ns;
} pretended;

int clock_shift_of(const char *text, int rank, struct clock_shift *shift)
{
    int saved_errno = errno;
    int valid = 1;
    *shift = (struct clock_shift){0, 0};
    while (valid && *text) {
        int64_t numbers[CONFIG_TUPLE];
        valid = config_next_tuple("LAPSCOPE_TEST_CLOCK", &text, numbers);
        if (valid && numbers[0] == rank)
            *shift = (struct clock_shift){numbers[1], numbers[2]};
    }
    errno = saved_errno;
    return valid;
}

static int64_t shifted(int64_t monotonic_ns)
{
    __int128 since_start = monotonic_ns - pretended.start_ns;
    return monotonic_ns + pretended.shift.ahead_us * 1000 + (int64_t)(since_start * pretended.shift.faster_ppm / 1000000);
}

struct spool_clock_pair clock_pretend(struct clock_shift shift, struct spool_clock_pair start)
{
    pretended.shift = shift;
    pretended.start_ns = start.monotonic_ns;
    return (struct spool_clock_pair){start.ticks, shifted(start.monotonic_ns)};
}

/* ------------------------------------------------------------------------------------------------------------------ */

struct spool_clock_pair clock_true_pair(void)
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

struct spool_clock_pair clock_pair(void)
{
    struct spool_clock_pair pair = clock_true_pair();
    pair.monotonic_ns = shifted(pair.monotonic_ns);
    return pair;
}
