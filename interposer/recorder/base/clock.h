/*
 * The recorder's clock: the invariant time-stamp counter where there is one, else CLOCK_MONOTONIC.
 * Ticks become nanoseconds only when the spool is read, from pairs of both clocks.
 */
#ifndef LAPSCOPE_CLOCK_H
#define LAPSCOPE_CLOCK_H

#include "../../../schema/spool.h"
#include "config.h"

#include <time.h>

extern int clock_is_tsc; /* set once by clock_select */

static inline uint64_t clock_nanoseconds(clockid_t id)
{
    struct timespec now;
    clock_gettime(id, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* The time-stamp counter, where clock_is_tsc. */
static inline uint64_t clock_tsc(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    uint64_t ticks;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
#else
    return 0;
#endif
}

static inline uint64_t clock_now(void)
{
    if (__builtin_expect(clock_is_tsc, 1))
        return clock_tsc();
    return clock_nanoseconds(CLOCK_MONOTONIC);
}

/* A positive rate of ticks a nanosecond as mantissa / 2^shift. Nothing is computed in floating point where the application calls MPI:
 * it raises flags there, which programs read, and trap. */
static inline uint64_t clock_mantissa(double rate, unsigned *shift)
{
    uint64_t bits;
    __builtin_memcpy(&bits, &rate, sizeof bits);
    *shift = 1075 - (unsigned)(bits >> 52 & 2047);
    return (bits & ((UINT64_C(1) << 52) - 1)) | UINT64_C(1) << 52;
}

/* Of a rate from 1e-2 to 1e3, as clocks have. */
static inline uint64_t clock_ticks(uint64_t ns, double rate)
{
    unsigned shift;
    unsigned __int128 product = (unsigned __int128)ns * clock_mantissa(rate, &shift);
    return (uint64_t)(product >> shift);
}

static inline uint64_t clock_ns(uint64_t ticks, double rate)
{
    unsigned shift;
    uint64_t mantissa = clock_mantissa(rate, &shift);
    return (uint64_t)(((unsigned __int128)ticks << shift) / mantissa);
}

/* Whether a list of the kernel's has the TSC: it takes out what it has found not to keep time. */
int clock_lists_tsc(const char *sources);

/* Decides for this process; returns 0 when the time-stamp counter was asked for and is not invariant. */
int clock_select(enum config_choice choice);

/* A clock that is recorded as another than it is, for tests of clock correction. */
struct clock_shift {
    int64_t ahead_us, faster_ppm;
};

/* What LAPSCOPE_TEST_CLOCK says of a rank: "RANK:MICROSECONDS:PPM", several separated by commas. Returns 0 when the
 * text is not of that form. */
int clock_shift_of(const char *text, int rank, struct clock_shift *shift);

/* From now on CLOCK_MONOTONIC is recorded as if ahead by the shift at the moment `start`; returns `start` so shifted.
 */
struct spool_clock_pair clock_pretend(struct clock_shift shift, struct spool_clock_pair start);

/* The same instant on both clocks, to some tens of nanoseconds; the second as the kernel tells it, whatever is pretended. */
struct spool_clock_pair clock_pair(void);
struct spool_clock_pair clock_true_pair(void);

#endif
