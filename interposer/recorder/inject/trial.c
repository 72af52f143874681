#include "trial.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_SEEN = 20 /* rounds, then the trial is over */, ENOUGH_AMONG_ALIKE = 10, CLIPPED_FROM = 8 };

/* When it is looked whether something can be decided. Each look, and each arm, is one more occasion to be wrong: so a
 * look asks for a confidence of which all of them together leave 95 %. */
static const unsigned char looks[] = {4, 5, 6, 8, 10, 12, 14, 17, MOST_SEEN};

static const double z_of_look = 3.1, z_of_95 = 1.96;
static const double negligible = 0.005; /* a gain that nobody needs */
static const double alike = 0.015;      /* arms that differ by less may be taken for each other */
static const double clip_deviations = 4, deviation_of_median = 1.4826;

/* --- numbers ------------------------------------------------------------------------------------------------------
 * Without libm, which a recorder is not linked with. */

static double root(double x)
{
    double guess = x > 1 ? x : 1;
    for (int i = 0; i < 64 && x > 0; i++)
        guess = (guess + x / guess) / 2;
    return x > 0 ? guess : 0;
}

static double absolute(double x)
{
    return x < 0 ? -x : x;
}

/* The quantile of Student's distribution where the normal one has z (Abramowitz and Stegun 26.7.5). */
static double student(double z, unsigned freedom)
{
    double n = freedom, z2 = z * z;
    return z * (1 + (z2 + 1) / (4 * n) + ((5 * z2 + 16) * z2 + 3) / (96 * n * n) +
                (((3 * z2 + 19) * z2 + 17) * z2 - 15) / (384 * n * n * n));
}

static int by_value(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return left < right ? -1 : left > right;
}

static double median(const double *values, unsigned count)
{
    double sorted[TRIAL_ROUNDS];
    memcpy(sorted, values, count * sizeof *values);
    qsort(sorted, count, sizeof *sorted, by_value);
    return (sorted[(count - 1) / 2] + sorted[count / 2]) / 2;
}

/* Draws values that are far outside in: a slot in which a machine paused tells of the machine. */
static void clip(double *values, unsigned count)
{
    double away[TRIAL_ROUNDS], middle = median(values, count);
    for (unsigned i = 0; i < count; i++)
        away[i] = absolute(values[i] - middle);
    double most = clip_deviations * deviation_of_median * median(away, count);
    for (unsigned i = 0; most > 0 && i < count; i++)
        if (away[i] > most)
            values[i] = middle + (values[i] < middle ? -most : most);
}

/* --- gains -------------------------------------------------------------------------------------------------------- */

/* Of two times what the second saves, related to their mean: alike in both directions, unlike a ratio. */
static double difference(double against, double arm)
{
    return 2 * (against - arm) / (against + arm);
}

static double share_of(double difference)
{
    return difference <= -1.999 ? -2 : 2 * difference / (2 + difference);
}

static unsigned kept(const struct trial *trial)
{
    return trial->rounds < TRIAL_ROUNDS ? trial->rounds : TRIAL_ROUNDS;
}

static struct trial_gain gain(const struct trial *trial, unsigned arm, unsigned against, double z)
{
    double values[TRIAL_ROUNDS], mean = 0, squares = 0;
    unsigned count = 0;
    for (unsigned i = 0; i < kept(trial); i++)
        if (trial->took[i][arm] > 0 && trial->took[i][against] > 0)
            values[count++] = difference(trial->took[i][against], trial->took[i][arm]);
    if (count >= CLIPPED_FROM)
        clip(values, count);
    for (unsigned i = 0; i < count; i++)
        mean += values[i] / count;
    for (unsigned i = 0; i < count; i++)
        squares += (values[i] - mean) * (values[i] - mean);
    if (count < 3)
        return (struct trial_gain){count ? share_of(mean) : 0, -2, 1, count};
    double half = student(z, count - 1) * root(squares / (count - 1) / count);
    return (struct trial_gain){share_of(mean), share_of(mean - half), share_of(mean + half), count};
}

struct trial_gain trial_gain(const struct trial *trial, unsigned arm, unsigned against)
{
    return gain(trial, arm, against, z_of_95);
}

/* --- what to keep ------------------------------------------------------------------------------------------------- */

static int is_alive(const struct trial *trial, unsigned arm)
{
    return trial->alive >> arm & 1;
}

/* Of those alive the one that saves most. What has not been seen beside the program as it is, saves nothing. */
static unsigned best(const struct trial *trial)
{
    unsigned found = 0;
    double most = is_alive(trial, 0) ? 0 : -3;
    for (unsigned arm = 1; arm < trial->arms; arm++) {
        double share = gain(trial, arm, 0, z_of_look).share;
        if (is_alive(trial, arm) && share > most) {
            most = share;
            found = arm;
        }
    }
    return found;
}

static void eliminate(struct trial *trial)
{
    trial->leader = best(trial);
    for (unsigned arm = 0; arm < trial->arms; arm++)
        if (arm != trial->leader && is_alive(trial, arm) && gain(trial, trial->leader, arm, z_of_look).low > 0)
            trial->alive &= ~(1u << arm);
}

static int may_gain(const struct trial *trial)
{
    for (unsigned arm = 1; arm < trial->arms; arm++)
        if (is_alive(trial, arm) && gain(trial, arm, 0, z_of_look).high > negligible)
            return 1;
    return 0;
}

static int others_are_alike(const struct trial *trial)
{
    for (unsigned arm = 1; arm < trial->arms; arm++)
        if (arm != trial->leader && is_alive(trial, arm) && gain(trial, arm, trial->leader, z_of_look).high > alike)
            return 0;
    return 1;
}

static int decide(struct trial *trial)
{
    eliminate(trial);
    if (!may_gain(trial))
        return 0;
    if (!is_alive(trial, 0) && (trial->rounds >= ENOUGH_AMONG_ALIKE || others_are_alike(trial)))
        return (int)trial->leader;
    return trial->rounds >= MOST_SEEN ? TRIAL_UNSURE : TRIAL_GOES_ON;
}

void trial_begin(struct trial *trial, unsigned arms, unsigned alive)
{
    *trial = (struct trial){.arms = arms, .alive = alive | 1};
}

void trial_note(struct trial *trial, const double *took)
{
    memcpy(trial->took[trial->rounds++ % TRIAL_ROUNDS], took, trial->arms * sizeof *took);
}

int trial_add(struct trial *trial, const double *took)
{
    trial_note(trial, took);
    if (trial->alive == 1)
        return 0;
    for (unsigned i = 0; i < sizeof looks; i++)
        if (looks[i] == trial->rounds)
            return decide(trial);
    return trial->rounds > MOST_SEEN ? TRIAL_UNSURE : TRIAL_GOES_ON;
}

void trial_lose(struct trial *trial, unsigned arm)
{
    trial->alive &= ~(1u << arm) | 1;
    if (trial->leader == arm)
        trial->leader = best(trial);
}
