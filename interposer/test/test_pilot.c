/* LAPSCOPE_INJECT=auto without MPI: a made program, whose steps take as long as its arms say, with noise. */
#include "check.h"

#include "../recorder/inject/pilot.h"

enum { ARMS = 4, DRAWS = 400 };

static const uint64_t ms = 1000000, start_ns = 1764000000000000000;

/* A generator of its own, so that a failure can be repeated. */
static uint64_t random_state;

static double uniform(void)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (double)(random_state >> 11) / (double)(1ull << 53);
}

/* About normal, of deviation 1. */
static double normal(void)
{
    double sum = -6;
    for (int i = 0; i < 12; i++)
        sum += uniform();
    return sum;
}

struct program {
    double step_ms;
    double takes[ARMS];      /* share of step_ms under each arm */
    double noise;            /* of a step, as a share of it */
    double common;           /* of ten steps in a row */
    double pauses;           /* probability that a step has one of 200 ms */
    double beside;           /* share of a step with computation beside messages */
    int burst;               /* posts of the anchor in a step */
    double factor;           /* of the ten steps under way */
    uint64_t steps;
};

static const struct program plain = {.step_ms = 10, .takes = {1, 1, 1, 1}, .noise = 0.05, .beside = 0.5, .burst = 1};

static uint64_t step_ns(struct program *program, unsigned arm)
{
    if (program->steps++ % 10 == 0)
        program->factor = 1 + program->common * normal();
    double took = program->step_ms * program->takes[arm] * program->factor * (1 + program->noise * normal());
    if (uniform() < program->pauses)
        took += 200;
    return (uint64_t)((took > 0.01 ? took : 0.01) * (double)ms);
}

/* So many steps of the program, from `now`; returns when they end. */
static uint64_t run(struct pilot *pilot, struct program *program, uint64_t now, uint64_t steps)
{
    for (uint64_t i = 0; i < steps; i++) {
        for (int post = 0; post < program->burst; post++)
            pilot_post(pilot, now + (uint64_t)post * 10000, 1);
        uint64_t took = step_ns(program, pilot->arm);
        now += took;
        pilot->beside.ns += (uint64_t)((double)took * program->beside);
        pilot->beside.pieces++;
    }
    return now;
}

static struct pilot begin(uint64_t seed, uint64_t *now)
{
    struct pilot pilot = {.arms = ARMS, .usable = (1u << ARMS) - 1, .seed = seed, .budget = 3};
    random_state = seed * 7919 + 1;
    *now = start_ns + seed * 12345678901u;
    pilot_begin(&pilot, *now);
    return pilot;
}

/* --- which arm is kept -------------------------------------------------------------------------------------------- */

struct outcome {
    unsigned kept[ARMS];     /* draws that ended so; 0: with nothing */
    unsigned undecided;
    double steps;            /* until the decision, in the mean */
    double lost;             /* share of the time, the most of all draws */
};

static uint64_t steps_until_decided(struct pilot *pilot, struct program *program, uint64_t *now, uint64_t most)
{
    uint64_t steps = 0;
    while (steps < most && pilot->phase != PILOT_KEEPS && !(pilot->phase == PILOT_SLEEPS && pilot->trial.rounds)) {
        *now = run(pilot, program, *now, 10);
        steps += 10;
    }
    return steps;
}

static struct outcome draws_of(const struct program *like, uint64_t most_steps)
{
    struct outcome outcome = {0};
    for (uint64_t draw = 1; draw <= DRAWS; draw++) {
        uint64_t now;
        struct program program = *like;
        struct pilot pilot = begin(draw, &now);
        uint64_t steps = steps_until_decided(&pilot, &program, &now, most_steps);
        outcome.steps += (double)steps / DRAWS;
        outcome.undecided += steps >= most_steps;
        outcome.kept[pilot.phase == PILOT_KEEPS ? pilot.kept : 0]++;
        double lost = (double)pilot_lost_ns(&pilot) / (double)(now - pilot.began);
        outcome.lost = lost > outcome.lost ? lost : outcome.lost;
    }
    printf("kept: %u without, %u %u %u; %u undecided, after %.0f steps\n", outcome.kept[0], outcome.kept[1],
           outcome.kept[2], outcome.kept[3], outcome.undecided, outcome.steps);
    return outcome;
}

static void test_the_best_arm_is_kept(void)
{
    struct program program = plain;
    memcpy(program.takes, (double[]){1, 0.8, 0.95, 0.85}, sizeof program.takes);
    struct outcome outcome = draws_of(&program, 5000);
    CHECK(outcome.kept[1] >= DRAWS * 95 / 100);
    CHECK(outcome.steps < 400);
    memcpy(program.takes, (double[]){1, 1.01, 1, 0.6}, sizeof program.takes);
    program.common = 0.05;
    outcome = draws_of(&program, 5000);
    CHECK(outcome.kept[3] >= DRAWS * 95 / 100);
    CHECK(outcome.steps < 300);
}

static void test_noise_is_no_gain(void)
{
    struct program program = plain;
    struct outcome outcome = draws_of(&program, 5000);
    CHECK(outcome.kept[0] > DRAWS * 95 / 100);
    CHECK_EQUAL(outcome.undecided, 0);
    program.common = 0.1;
    program.pauses = 0.01;
    CHECK(draws_of(&program, 20000).kept[0] > DRAWS * 95 / 100);
    memcpy(program.takes, (double[]){1, 1.02, 1.05, 1.01}, sizeof program.takes);
    CHECK(draws_of(&program, 20000).kept[0] > DRAWS * 95 / 100);
}

static void test_steps_of_any_length(void)
{
    for (double step_ms = 0.3; step_ms < 5000; step_ms *= 3.7) {
        uint64_t now;
        struct program program = plain;
        program.step_ms = step_ms;
        program.takes[2] = 0.7;
        struct pilot pilot = begin(7, &now);
        steps_until_decided(&pilot, &program, &now, 200000);
        CHECK_EQUAL(pilot.phase, PILOT_KEEPS);
        CHECK_EQUAL(pilot.kept, 2);
        double slot_ms = (double)(1ull << pilot.shift) / (double)ms;
        CHECK(slot_ms >= 3 * step_ms * 0.7 && (slot_ms <= 20 * step_ms || slot_ms < 135));
    }
}

static void test_posts_that_come_in_bursts(void)
{
    struct program program = plain;
    program.burst = 6;
    program.takes[1] = 0.7;
    CHECK(draws_of(&program, 5000).kept[1] >= DRAWS * 95 / 100);
}

/* Where the first of two transfers stalls, the second is posted so late that it looks like a step of its own. */
static void test_posts_that_a_stall_moves_apart(void)
{
    uint64_t now;
    struct pilot pilot = begin(4, &now);
    for (int i = 0; i < 2000; i++) {
        pilot_post(&pilot, now, 1);
        int is_stalled = pilot.arm != 1;
        pilot_post(&pilot, now + (is_stalled ? 4 : 1) * ms, 1);
        now += (uint64_t)((is_stalled ? 10 : 8) * (1 + 0.05 * normal()) * (double)ms);
        pilot.beside.ns += 4 * ms;
        pilot.beside.pieces++;
    }
    CHECK_EQUAL(pilot.phase, PILOT_KEEPS);
    CHECK_EQUAL(pilot.kept, 1);
}

static void test_pauses(void)
{
    struct program program = plain;
    program.pauses = 0.01;
    program.takes[1] = 0.7;
    CHECK(draws_of(&program, 20000).kept[1] >= DRAWS * 95 / 100);
}

/* --- what it costs ------------------------------------------------------------------------------------------------ */

static void test_the_budget_holds(void)
{
    struct program program = plain;
    memcpy(program.takes, (double[]){1, 1.5, 2, 1.2}, sizeof program.takes);
    struct outcome outcome = draws_of(&program, 20000);
    CHECK_EQUAL(outcome.kept[0], DRAWS);
    /* a round is under way when it is noticed */
    double bare = 0, taken = 0;
    for (uint64_t draw = 1; draw <= 20; draw++) {
        uint64_t now;
        struct program other = program;
        struct pilot pilot = begin(draw, &now);
        taken += (double)(run(&pilot, &other, now, 6000) - now);
        bare += 6000 * program.step_ms * (double)ms;
    }
    printf("losses %.2f %%\n", 100 * (taken / bare - 1));
    CHECK(taken < bare * 1.035);
}

static void test_spent_out_it_rests(void)
{
    uint64_t now;
    struct program program = plain;
    program.takes[1] = 0.7;
    struct pilot pilot = begin(3, &now);
    now = run(&pilot, &program, now, 5);
    pilot.spent_ns = 1000 * ms; /* of which 3 % are 33 s */
    now = run(&pilot, &program, now, 20); /* the slot under way ends first */
    for (int i = 0; i < 1000; i++) {
        now = run(&pilot, &program, now, 1);
        CHECK_EQUAL(pilot.arm, 0);
    }
    CHECK_EQUAL(pilot.trial.rounds, 0);
    now = run(&pilot, &program, now, 6000);
    CHECK_EQUAL(pilot.phase, PILOT_KEEPS);
}

/* The third would gain most if it might cost 5 %. Held back to 3 % of its own slots it gains in three of five steps. */
static void test_an_arm_is_tried_within_the_budget(void)
{
    uint64_t now, spent = 0;
    struct program program = plain;
    struct pilot pilot = begin(9, &now);
    for (int i = 0; i < 4000; i++) {
        uint64_t before = now;
        struct pilot_cost cost = pilot_cost(&pilot, now);
        int is_held_back = cost.ns * 100 > 3 * cost.of_ns;
        memcpy(program.takes, (double[]){1, 0.8, 1, is_held_back ? 1 : 0.75}, sizeof program.takes);
        now = run(&pilot, &program, now, 1);
        spent += pilot.arm == 3 && !is_held_back ? (now - before) / 20 : pilot.arm == 1 ? (now - before) / 100 : 0;
        pilot.spent_ns = spent;
    }
    CHECK_EQUAL(pilot.phase, PILOT_KEEPS);
    CHECK_EQUAL(pilot.kept, 1);
}

static void test_nothing_to_do(void)
{
    uint64_t now;
    struct program program = plain;
    program.beside = 0.002;
    struct pilot pilot = begin(1, &now);
    for (int i = 0; i < 5000; i++) {
        now = run(&pilot, &program, now, 1);
        CHECK(pilot.arm == 0);
    }
    CHECK_EQUAL(pilot.decided, 1);
    CHECK_EQUAL(pilot.decisions[0].event, PILOT_NOTHING_BESIDE);
    CHECK_EQUAL(pilot_gain(&pilot).rounds, 0);
}

/* The thread loses its processor for four milliseconds beside one of twenty steps. */
static void test_a_processor_lost_now_and_then_is_no_computation(void)
{
    uint64_t now;
    struct program program = plain;
    program.beside = 0;
    struct pilot pilot = begin(1, &now);
    for (int i = 0; i < 5000; i++) {
        now = run(&pilot, &program, now, 1);
        pilot.beside.pieces -= i % 20 != 0;
        pilot.beside.ns += i % 20 == 0 ? 4 * ms : 0;
        CHECK(pilot.arm == 0);
    }
    CHECK_EQUAL(pilot.decisions[0].event, PILOT_NOTHING_BESIDE);
}

/* --- while it is kept --------------------------------------------------------------------------------------------- */

static void test_a_kept_arm_is_proved(void)
{
    unsigned right = 0;
    for (uint64_t draw = 1; draw <= DRAWS; draw++) {
        uint64_t now;
        struct program program = plain;
        program.takes[1] = 0.75;
        struct pilot pilot = begin(draw, &now);
        run(&pilot, &program, now, 3000);
        struct trial_gain gain = pilot_gain(&pilot);
        CHECK(gain.rounds >= 6);
        CHECK(gain.share > 0.2 && gain.share < 0.3);
        right += gain.low < 0.25 && gain.high > 0.25;
        double share_without = (double)pilot.sums[0].slots / (double)(pilot.sums[0].slots + pilot.sums[1].slots);
        CHECK(share_without < 0.25);
    }
    printf("%u of %u intervals hold the truth\n", right, DRAWS);
    CHECK(right >= DRAWS * 90 / 100);
}

static int has_event(const struct pilot *pilot, enum pilot_event event)
{
    for (unsigned i = 0; i < pilot->decided && i < PILOT_DECISIONS; i++)
        if (pilot->decisions[i].event == event)
            return 1;
    return 0;
}

static void test_a_change_is_followed(void)
{
    uint64_t now;
    struct program program = plain;
    program.takes[1] = 0.7;
    struct pilot pilot = begin(5, &now);
    now = run(&pilot, &program, now, 2000);
    CHECK_EQUAL(pilot.kept, 1);
    program.step_ms = 25; /* steps are longer, and another arm is better */
    program.takes[1] = 1;
    program.takes[2] = 0.7;
    now = run(&pilot, &program, now, 2000);
    CHECK(has_event(&pilot, PILOT_CHANGED));
    CHECK_EQUAL(pilot.phase, PILOT_KEEPS);
    CHECK_EQUAL(pilot.kept, 2);
    program.takes[2] = 1; /* the gain is gone */
    program.step_ms *= 0.75;
    run(&pilot, &program, now, 6000);
    CHECK(has_event(&pilot, PILOT_WITHOUT) || has_event(&pilot, PILOT_CHANGED));
    CHECK_EQUAL(pilot.phase, PILOT_SLEEPS);
}

static void test_a_gain_that_appears_is_found(void)
{
    uint64_t now;
    struct program program = plain;
    struct pilot pilot = begin(5, &now);
    now = run(&pilot, &program, now, 2000);
    CHECK_EQUAL(pilot.phase, PILOT_SLEEPS);
    program.step_ms = 20;
    program.takes[3] = 0.6;
    run(&pilot, &program, now, 6000);
    CHECK_EQUAL(pilot.phase, PILOT_KEEPS);
    CHECK_EQUAL(pilot.kept, 3);
}

static void test_idle_and_on_again(void)
{
    uint64_t now;
    struct program program = plain;
    program.takes[1] = 0.7;
    struct pilot pilot = begin(5, &now);
    now = run(&pilot, &program, now, 2000);
    pilot_idle(&pilot, now);
    CHECK_EQUAL(pilot.phase, PILOT_SLEEPS);
    CHECK_EQUAL(pilot.arm, 0);
    now = run(&pilot, &program, now + 5000 * ms, 20);
    CHECK_EQUAL(pilot.phase, PILOT_KEEPS);
    pilot_lose(&pilot, 1, now);
    CHECK_EQUAL(pilot.arm, 0);
    run(&pilot, &program, now, 3000);
    CHECK_EQUAL(pilot.phase, PILOT_SLEEPS);
    CHECK_EQUAL(pilot.sums[1].slots > 0, 1);
}

/* --- ranks among each other --------------------------------------------------------------------------------------- */

/* Steps of a program whose ranks wait for each other take as long as the worst arm of all says. Each rank posts a little later
 * than the others, and not the same in each step. Returns how many of 1000 steps all ranks had the same arm in. */
static uint64_t ranks_of(uint64_t seed, struct program program, struct pilot *pilots, int ranks)
{
    enum { STEPS = 3000 };
    uint64_t now = 0, alike = 0;
    for (int rank = 0; rank < ranks; rank++)
        pilots[rank] = begin(seed, &now);
    for (uint64_t i = 0; i < STEPS; i++) {
        unsigned worst = pilots[0].arm;
        int same = 1;
        for (int rank = 0; rank < ranks; rank++) {
            pilot_post(&pilots[rank], now + (uint64_t)(uniform() * 0.1 * program.step_ms * (double)ms), 1);
            pilots[rank].beside.ns += 2 * ms;
            pilots[rank].beside.pieces++;
            if (program.takes[pilots[rank].arm] >= program.takes[worst])
                worst = pilots[rank].arm;
            same &= pilots[rank].arm == pilots[0].arm;
        }
        alike += (uint64_t)same;
        now += step_ns(&program, worst);
    }
    return 1000 * alike / STEPS;
}

static void test_ranks_agree(void)
{
    enum { RANKS = 4 };
    struct pilot pilots[RANKS];
    struct program program = plain;
    unsigned agree = 0;
    program.takes[1] = 0.7;
    for (uint64_t seed = 1; seed <= DRAWS; seed++) {
        program.step_ms = 9 + 20 * (double)seed / DRAWS; /* there are lengths for which slots of two lengths would do */
        uint64_t alike = ranks_of(seed, program, pilots, RANKS);
        int do_agree = alike >= 950;
        for (int rank = 0; rank < RANKS; rank++)
            do_agree &= pilots[rank].phase == PILOT_KEEPS && pilots[rank].kept == 1 && pilots[rank].shift == pilots[0].shift;
        agree += (unsigned)do_agree;
    }
    printf("ranks agree in %u of %u\n", agree, DRAWS);
    CHECK(agree >= DRAWS * 95 / 100);
}

int main(void)
{
    test_the_best_arm_is_kept();
    test_noise_is_no_gain();
    test_steps_of_any_length();
    test_posts_that_come_in_bursts();
    test_posts_that_a_stall_moves_apart();
    test_pauses();
    test_the_budget_holds();
    test_spent_out_it_rests();
    test_an_arm_is_tried_within_the_budget();
    test_nothing_to_do();
    test_a_processor_lost_now_and_then_is_no_computation();
    test_a_kept_arm_is_proved();
    test_a_change_is_followed();
    test_a_gain_that_appears_is_found();
    test_idle_and_on_again();
    test_ranks_agree();
    return check_summary();
}
