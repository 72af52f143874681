/*
 * The state of a thread that nobody saves for a program but who interrupts it: errno, rounding, exceptions that trap, denormal
 * numbers taken for zero, the wide registers and those of the x87. What is computed while messages are pending is bit for bit what
 * was computed before.
 */
#include "traffic.h"

#include <errno.h>
#include <fenv.h>
#include <immintrin.h>

enum { STEPS = 60000, LANES = 8, ROUNDS = 150, UNLIKELY_ERRNO = 12345 };

struct results {
    double upward, downward, vector[LANES];
    long double wide;
    float denormal;
};

/* Computes in the SSE registers, rounded as `rounding` says; exceptions raised by it stay raised. */
static double sum_rounded(int rounding)
{
    volatile double sum = 0;
    CHECK(fesetround(rounding) == 0);
    for (int i = 1; i < STEPS; i++)
        sum = sum + 1.0 / i;
    CHECK(fegetround() == rounding);
    CHECK(fesetround(FE_TONEAREST) == 0);
    return sum;
}

/* Computes on the stack of the x87. */
static long double sum_wide(void)
{
    long double sum = 0, term = 1;
    for (int i = 1; i < STEPS; i++) {
        term = term * 0.9999L + 1.0L / i;
        sum += term;
    }
    return sum;
}

/* Of the smallest floats, some of which count as zero when the processor is told so (FTZ, DAZ). */
static float sum_denormal(int zero)
{
    enum { FLUSH_TO_ZERO = 0x8000, DENORMALS_ARE_ZERO = 0x40 };
    unsigned before = _mm_getcsr(), mode = before | (zero ? FLUSH_TO_ZERO | DENORMALS_ARE_ZERO : 0);
    volatile float sum = 0, small = 1e-40f;
    _mm_setcsr(mode);
    for (int i = 0; i < STEPS; i++)
        sum = sum + small;
    CHECK((_mm_getcsr() & ~0x3fu) == (mode & ~0x3fu));
    _mm_setcsr(before);
    return sum;
}

/* Keeps all that it computes in registers of 32 bytes. */
__attribute__((target("avx2"))) static void multiply_vectors(double *result)
{
    __m256d a = _mm256_set_pd(0.1, 0.2, 0.3, 0.4), b = _mm256_set_pd(0.5, 0.6, 0.7, 0.8);
    __m256d one = _mm256_set1_pd(1.0), factor = _mm256_set1_pd(3.7);
    for (int i = 0; i < STEPS; i++) {
        a = _mm256_mul_pd(_mm256_mul_pd(factor, a), _mm256_sub_pd(one, a));
        b = _mm256_mul_pd(_mm256_mul_pd(factor, b), _mm256_sub_pd(one, b));
    }
    _mm256_storeu_pd(result, a);
    _mm256_storeu_pd(result + 4, b);
}

static void compute_all(struct results *results)
{
    memset(results, 0, sizeof *results);
    results->upward = sum_rounded(FE_UPWARD);
    results->downward = sum_rounded(FE_DOWNWARD);
    results->wide = sum_wide();
    results->denormal = sum_denormal(1) * 2 + sum_denormal(0);
    if (__builtin_cpu_supports("avx2"))
        multiply_vectors(results->vector);
}

/* Exceptions that trap stay those that trap, and those that were raised stay raised, and no others. */
static void compute_with_traps(void)
{
    CHECK(feclearexcept(FE_ALL_EXCEPT) == 0 && feraiseexcept(FE_UNDERFLOW) == 0);
    CHECK(feenableexcept(FE_DIVBYZERO | FE_INVALID | FE_OVERFLOW) == 0);
    volatile double half = 1;
    for (int i = 0; i < STEPS; i++)
        half = i % 1000 ? half / 2 : 1;
    CHECK(fegetexcept() == (FE_DIVBYZERO | FE_INVALID | FE_OVERFLOW));
    CHECK(fetestexcept(FE_ALL_EXCEPT) == FE_UNDERFLOW);
    CHECK(fedisableexcept(FE_ALL_EXCEPT) != -1);
}

static struct results expected;

static void work(int round)
{
    struct results results;
    (void)round;
    errno = UNLIKELY_ERRNO;
    compute_all(&results);
    compute_with_traps();
    CHECK(errno == UNLIKELY_ERRNO);
    CHECK(memcmp(&results, &expected, sizeof results) == 0);
}

int main(int argc, char **argv)
{
    int rank = start(&argc, &argv, 2);
    compute_all(&expected);
    CHECK(expected.upward > expected.downward);
    under_traffic(argc, argv, ROUNDS, work);
    if (rank == 0)
        puts("the same to the last bit");
    MPI_Finalize();
    return 0;
}
