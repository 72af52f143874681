#include "pilot.h"

#include "../base/intern.h"

#include <string.h>

enum {
    STEPS = 4,              /* a slot is to hold */
    SHORTEST_SHIFT = 27,    /* 134 ms: a step that is counted may be a part of one that recurs after some of them */
    STRETCH = 2,            /* then slots are so many powers of two longer, */
    MOST_STRETCHED = 2,     /* so often */
    LONGEST_SHIFT = 34,     /* 17 s */
    STEPS_TO_WATCH = 8,
    STEPS_TO_FIT = 20,
    ROUNDS_TO_FIT = 2,
    PERCENT = 100,
    LEAST_BESIDE = 100,     /* one of so many nanoseconds */
    LEAST_PIECES = 4,       /* one in so many steps: a thread that lost its processor now and then computed nothing */
    CLASSES_A_DOUBLING = 4,
    MOST_TIME = 1 << 24,    /* of all classes: then they are halved */
    PROOFS = 6              /* rounds that say more than the exploration did */
};

static const uint64_t second = 1000000000, shortest_watch = 100000000;
static const double other_pace = 1.3; /* a change of behaviour */
static const double promising = 0.02; /* a gain, though not a certain one */

/* --- decisions ---------------------------------------------------------------------------------------------------- */

static void note(struct pilot *p, uint64_t now, enum pilot_event event, unsigned arm, struct trial_gain gain)
{
    unsigned at = p->decided < PILOT_DECISIONS ? p->decided : PILOT_DECISIONS - 1;
    if (p->decided >= PILOT_DECISIONS) /* the first stays */
        memmove(&p->decisions[1], &p->decisions[2], (PILOT_DECISIONS - 2) * sizeof p->decisions[0]);
    p->decisions[at] = (struct pilot_decision){now - p->began, event, arm, p->trial.rounds, gain};
    p->decided++;
}

static void enter_phase(struct pilot *p, uint64_t now, enum pilot_phase phase)
{
    p->phase = phase;
    p->phase_began = now;
    p->steps_in_phase = 0;
    p->recent_count = 0;
    p->reference = 0;
    p->beside_before = p->beside;
    p->rests = 0;
    memset(p->in_round, 0, sizeof p->in_round);
    p->round = UINT64_MAX; /* the one under way is none of the new phase's */
}

static const struct trial_gain no_gain;

/* What is found time and again is said once. */
static void note_once(struct pilot *p, uint64_t now, enum pilot_event event)
{
    unsigned count = p->decided < PILOT_DECISIONS ? p->decided : PILOT_DECISIONS;
    if (!count || p->decisions[count - 1].event != event)
        note(p, now, event, 0, no_gain);
}

static void sleep_on(struct pilot *p, uint64_t now, enum pilot_event event)
{
    note_once(p, now, event);
    p->wake_at = event == PILOT_NOTHING_BESIDE ? now + p->nap_ns : p->look_at;
    if (event == PILOT_NOTHING_BESIDE)
        p->nap_ns = p->nap_ns < 64 * second ? 2 * p->nap_ns : p->nap_ns;
    enter_phase(p, now, PILOT_SLEEPS);
}

static void explore(struct pilot *p, uint64_t now)
{
    trial_begin(&p->trial, p->arms, p->usable);
    memset(p->costs, 0, sizeof p->costs);
    note(p, now, PILOT_EXPLORE, 0, no_gain);
    p->nap_ns = 2 * second;
    enter_phase(p, now, PILOT_EXPLORES);
}

/* The next look costs what this one did: it comes after many times as long, and twice that the next time. */
static void plan_next_look(struct pilot *p, uint64_t now, uint64_t least)
{
    uint64_t took = now - p->phase_began, wait = 16 * took > least ? 16 * took : least;
    p->look_ns = 2 * p->look_ns > wait ? 2 * p->look_ns : wait;
    p->look_at = now + p->look_ns;
    p->may_look_at = now + 3 * took;
}

static void keep(struct pilot *p, uint64_t now, unsigned arm)
{
    p->kept = arm;
    p->gain = trial_gain(&p->trial, arm, 0);
    plan_next_look(p, now, 60 * second);
    note(p, now, PILOT_KEEP, arm, p->gain);
    trial_begin(&p->proof, p->arms, 1u << arm);
    enter_phase(p, now, PILOT_KEEPS);
}

static void decide(struct pilot *p, uint64_t now, unsigned arm)
{
    if (arm) {
        keep(p, now, arm);
        return;
    }
    plan_next_look(p, now, 20 * second);
    sleep_on(p, now, PILOT_OFF);
}

static void watch(struct pilot *p, uint64_t now)
{
    enter_phase(p, now, PILOT_WATCHES);
}

static void wake(struct pilot *p, uint64_t now)
{
    enter_phase(p, now, p->goes_on ? PILOT_KEEPS : PILOT_WATCHES);
    p->goes_on = 0;
}

static void look_again(struct pilot *p, uint64_t now, enum pilot_event why, struct trial_gain gain)
{
    if (why == PILOT_CHANGED)
        p->look_ns = 0;
    note(p, now, why, p->phase == PILOT_KEEPS ? p->kept : 0, gain);
    watch(p, now);
}

void pilot_changed(struct pilot *p, uint64_t now)
{
    memset(p->classes, 0, sizeof p->classes);
    p->stretched = 0;
    p->last_step = p->last_post = 0;
    p->posts_in_slot = p->posts_to_last_step = 0;
    p->nap_ns = 2 * second;
    if (p->phase == PILOT_SLEEPS && !p->trial.rounds)
        p->wake_at = now;
    else
        look_again(p, now, PILOT_CHANGED, no_gain);
}

void pilot_idle(struct pilot *p, uint64_t now)
{
    if (p->phase == PILOT_SLEEPS)
        return;
    note_once(p, now, PILOT_IDLE);
    p->goes_on = p->phase == PILOT_KEEPS;
    p->arm = 0;
    p->counts = 0;
    p->last_step = p->last_post = 0;
    p->wake_at = now;
    enter_phase(p, now, PILOT_SLEEPS);
}

void pilot_lose(struct pilot *p, unsigned arm, uint64_t now)
{
    p->usable &= ~(1u << arm);
    trial_lose(&p->trial, arm);
    p->counts = 0;
    if (p->arm == arm)
        p->arm = 0;
    if (p->phase == PILOT_KEEPS && p->kept == arm)
        watch(p, now);
}

/* --- the length of steps ------------------------------------------------------------------------------------------
 * Posts may come in bursts, which are one step each. What tells them apart is the length of which steps that are as long or
 * longer take half of the time: a fourth of it lies between bursts and within none. From steps so counted their mean is taken,
 * which ranks that wait for each other have alike. */

static unsigned class_of(uint64_t ns)
{
    unsigned doubling = 63u - (unsigned)__builtin_clzll(ns | 4), quarter = (unsigned)(ns >> (doubling - 2) & 3);
    unsigned class = doubling * CLASSES_A_DOUBLING + quarter;
    return class < PILOT_CLASSES ? class : PILOT_CLASSES - 1;
}

static uint64_t end_of_class(unsigned class)
{
    return (uint64_t)(CLASSES_A_DOUBLING + class % CLASSES_A_DOUBLING + 1) << (class / CLASSES_A_DOUBLING - 2);
}

static uint64_t all_time(const struct pilot *p)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < PILOT_CLASSES; i++)
        sum += p->classes[i];
    return sum;
}

static void note_length(struct pilot *p, uint64_t ns)
{
    uint64_t units = ns >> 14; /* 16 µs: shorter ones take no part */
    units = units < MOST_TIME / 4 ? units : MOST_TIME / 4;
    p->classes[class_of(ns)] += (uint32_t)units;
    if (all_time(p) > MOST_TIME)
        for (unsigned i = 0; i < PILOT_CLASSES; i++)
            p->classes[i] /= 2;
}

/* 0: not known. */
static uint64_t typical_length(const struct pilot *p)
{
    uint64_t half = (all_time(p) + 1) / 2, sum = 0;
    for (unsigned i = PILOT_CLASSES; i-- > 2 * CLASSES_A_DOUBLING && half;) {
        sum += p->classes[i];
        if (sum >= half)
            return end_of_class(i);
    }
    return 0;
}

static void know_bursts(struct pilot *p)
{
    uint64_t burst = typical_length(p) / 4;
    if (burst > 2 * p->burst || 2 * burst < p->burst) { /* steps were counted otherwise before */
        p->burst = burst;
        p->steps_in_phase = 0;
    }
}

/* So that a slot holds some steps. */
static void fit_slots(struct pilot *p)
{
    uint64_t step = p->steps_in_phase > 1 ? (p->last_step - p->first_in_phase) / (p->steps_in_phase - 1) : 0;
    unsigned shift = SHORTEST_SHIFT;
    while (shift < LONGEST_SHIFT && (uint64_t)1 << shift < STEPS * step)
        shift++;
    shift += STRETCH * p->stretched;
    shift = shift < LONGEST_SHIFT ? shift : LONGEST_SHIFT;
    if (!step || shift == p->shift)
        return;
    p->shift = shift;
    p->slot = p->round = UINT64_MAX;
    memset(p->in_round, 0, sizeof p->in_round);
}

/* --- rounds ------------------------------------------------------------------------------------------------------- */

static unsigned slots_a_round(const struct pilot *p)
{
    return p->phase == PILOT_KEEPS ? PILOT_PROOF : p->arms;
}

static uint64_t draw(const struct pilot *p, uint64_t number)
{
    uint64_t word = p->seed ^ number;
    word = intern_hash(&word, sizeof word); /* once more: neighbours are still alike in the upper bits */
    return intern_hash(&word, sizeof word) >> 20;
}

/* Each arm has a slot of a round, in an order drawn for it. */
static unsigned arm_at(const struct pilot *p, uint64_t round, unsigned place)
{
    unsigned order[TRIAL_ARMS];
    uint64_t drawn = draw(p, round);
    for (unsigned i = 0; i < p->arms; i++) {
        unsigned at = (unsigned)(drawn % (i + 1));
        drawn /= i + 1;
        order[i] = order[at];
        order[at] = i;
    }
    return order[place];
}

static unsigned arm_of_slot(const struct pilot *p, uint64_t slot)
{
    uint64_t round = slot / slots_a_round(p);
    unsigned place = (unsigned)(slot % slots_a_round(p)), arm;
    switch (p->phase) {
    case PILOT_EXPLORES:
        arm = p->rests ? 0 : arm_at(p, round, place);
        return arm == 0 || p->trial.alive >> arm & 1 ? arm : p->trial.leader;
    case PILOT_KEEPS:
        return place == draw(p, round) % PILOT_PROOF ? 0 : p->kept;
    default:
        return 0;
    }
}

uint64_t pilot_lost_ns(const struct pilot *p)
{
    double lost = 0;
    for (unsigned arm = 1; arm < p->arms; arm++)
        lost += p->lost_ns[arm] > 0 ? p->lost_ns[arm] : 0;
    return (uint64_t)lost;
}

/* Goes on when a tenth of the budget is there again. */
static int is_over_budget(const struct pilot *p, uint64_t now)
{
    uint64_t cost = (p->spent_ns + pilot_lost_ns(p)) * PERCENT, most = p->budget * (now - p->began);
    return p->rests ? cost > most / 10 * 9 : cost > most;
}

static void times_of_round(const struct pilot *p, double *took)
{
    for (unsigned arm = 0; arm < p->arms; arm++)
        took[arm] = p->in_round[arm].posts ? p->in_round[arm].ns / (double)p->in_round[arm].posts : 0;
}

static void note_losses(struct pilot *p, const double *took)
{
    for (unsigned arm = 1; arm < p->arms && took[0] > 0; arm++)
        if (took[arm] > 0)
            p->lost_ns[arm] += p->in_round[arm].ns * (took[arm] - took[0]) / took[arm];
}

/* Steps differ by more than the arms do: more of them in a slot differ less. */
static void stretch(struct pilot *p, uint64_t now)
{
    p->stretched++;
    fit_slots(p);
    explore(p, now);
}

static void end_of_exploring_round(struct pilot *p, uint64_t now)
{
    double took[TRIAL_ARMS];
    times_of_round(p, took);
    note_losses(p, took);
    unsigned seen = 0;
    for (unsigned arm = 0; arm < p->arms; arm++)
        seen += took[arm] > 0;
    if (p->rested || took[0] <= 0 || seen < 2)
        return;
    int arm = trial_add(&p->trial, took);
    if (arm == TRIAL_UNSURE && p->stretched < MOST_STRETCHED && trial_gain(&p->trial, p->trial.leader, 0).share > promising)
        stretch(p, now);
    else if (arm != TRIAL_GOES_ON)
        decide(p, now, arm > 0 ? (unsigned)arm : 0);
}

static void end_of_kept_round(struct pilot *p, uint64_t now)
{
    double took[TRIAL_ARMS];
    times_of_round(p, took);
    if (took[0] > 0 && took[p->kept] > 0)
        trial_note(&p->proof, took);
    struct trial_gain gain = trial_gain(&p->proof, p->kept, 0);
    int is_gone = gain.rounds >= PROOFS && (gain.high <= 0 || (gain.rounds >= PILOT_PROOF && gain.share <= 0));
    if (is_gone)
        look_again(p, now, PILOT_WITHOUT, gain);
    else if (now >= p->look_at)
        look_again(p, now, PILOT_AGAIN, gain);
}

static void end_of_watching_round(struct pilot *p, uint64_t now)
{
    uint64_t watched = now - p->phase_began;
    if (p->steps_in_phase < STEPS_TO_WATCH || watched < shortest_watch)
        return;
    int is_beside = (p->beside.ns - p->beside_before.ns) * LEAST_BESIDE >= watched &&
        (p->beside.pieces - p->beside_before.pieces) * LEAST_PIECES >= p->steps_in_phase;
    fit_slots(p);
    if (is_beside && p->usable != 1)
        explore(p, now);
    else
        sleep_on(p, now, PILOT_NOTHING_BESIDE);
}

static void end_round(struct pilot *p, uint64_t now)
{
    enum pilot_phase phase = p->phase;
    if (phase == PILOT_EXPLORES)
        end_of_exploring_round(p, now);
    else if (phase == PILOT_KEEPS)
        end_of_kept_round(p, now);
    /* at times that ranks have in common, and of so many steps that their means are the same */
    if (p->phase == phase && p->steps_in_phase >= STEPS_TO_FIT && p->round % ROUNDS_TO_FIT == 0)
        fit_slots(p);
}

/* --- slots -------------------------------------------------------------------------------------------------------- */

static double middle_of_recent(const struct pilot *p)
{
    double sorted[PILOT_RECENT];
    for (unsigned i = 0; i < PILOT_RECENT; i++) {
        unsigned at = i;
        for (; at > 0 && sorted[at - 1] > p->recent[i]; at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = p->recent[i];
    }
    return sorted[PILOT_RECENT / 2];
}

/* Whether steps of the arm in force have lastingly another length than when it came into force. */
static int pace_is_another(struct pilot *p, double took)
{
    p->recent[p->recent_count++ % PILOT_RECENT] = took;
    if (p->recent_count % PILOT_RECENT)
        return 0;
    double now = middle_of_recent(p);
    if (p->reference <= 0)
        p->reference = now;
    return now > other_pace * p->reference || now * other_pace < p->reference;
}

/* `begins`: a step does so now, and what began before it is over. A pause that is longer than a slot tells of no arm. */
static void end_slot(struct pilot *p, uint64_t now, int begins)
{
    if (p->phase == PILOT_EXPLORES && p->slot_began) {
        p->costs[p->arm].ns += p->spent_ns - p->spent_before;
        p->costs[p->arm].of_ns += now - p->slot_began;
    }
    p->slot_began = now;
    p->spent_before = p->spent_ns;
    int is_whole = begins && (now >> p->shift) - p->slot == 1;
    uint64_t posts = is_whole ? p->posts_in_slot : p->posts_to_last_step;
    if (!posts || !p->counts)
        return;
    double ns = (double)((is_whole ? now : p->last_step) - p->first_in_slot);
    p->in_round[p->arm].ns += ns;
    p->in_round[p->arm].posts += posts;
    p->sums[p->arm].slots++;
    p->sums[p->arm].posts += posts;
    p->sums[p->arm].ns += ns;
    int is_settled = p->phase == PILOT_KEEPS ? p->arm == p->kept : p->phase == PILOT_SLEEPS && p->trial.rounds;
    if (is_settled && pace_is_another(p, ns / (double)posts) && now >= p->may_look_at)
        look_again(p, now, PILOT_CHANGED, no_gain);
}

/* What ends may change the phase, and so the length of rounds. */
static void begin_round(struct pilot *p, uint64_t now)
{
    if (p->round != UINT64_MAX)
        end_round(p, now);
    p->round = (now >> p->shift) / slots_a_round(p);
    p->rested = 0;
    memset(p->in_round, 0, sizeof p->in_round);
}

static void next_slot(struct pilot *p, uint64_t now, int begins)
{
    end_slot(p, now, begins);
    if (p->phase == PILOT_WATCHES)
        end_of_watching_round(p, now);
    else if (p->phase == PILOT_SLEEPS && now >= p->wake_at)
        wake(p, now);
    know_bursts(p);
    if ((now >> p->shift) / slots_a_round(p) != p->round)
        begin_round(p, now);
    uint64_t slot = p->slot = now >> p->shift; /* ending a round may have changed it */
    p->rests = p->phase == PILOT_EXPLORES && is_over_budget(p, now);
    p->rested |= p->rests;
    p->arm = arm_of_slot(p, slot);
    p->counts = 1;
    p->posts_in_slot = p->posts_to_last_step = 0;
}

/* Whether the post begins a step. */
static int begins_step(struct pilot *p, uint64_t now)
{
    uint64_t since_post = now - p->last_post;
    if (p->last_post && now > p->last_post)
        note_length(p, since_post);
    p->last_post = now;
    return !p->last_step || since_post >= p->burst;
}

static void count_step(struct pilot *p, uint64_t now)
{
    if (!p->posts_in_slot)
        p->first_in_slot = now;
    p->posts_to_last_step = p->posts_in_slot;
    if (p->steps_in_phase++ == 0)
        p->first_in_phase = now;
    p->last_step = now;
}

/* Arms change where a step begins, so that each step is of one arm; and somewhere where none does for long. Progress is counted
 * by posts: which of them are of one step is a guess, and a transfer that stalls between two of them makes two steps of one. */
void pilot_post(struct pilot *p, uint64_t now, int is_step)
{
    int begins = is_step && begins_step(p, now);
    uint64_t slot = now >> p->shift;
    if (slot != p->slot && (begins || slot - p->slot != 1))
        next_slot(p, now, begins);
    if (begins)
        count_step(p, now);
    p->posts_in_slot += is_step && p->posts_in_slot + (uint64_t)begins; /* counted from a step on */
}

void pilot_begin(struct pilot *p, uint64_t now)
{
    p->began = now;
    p->shift = SHORTEST_SHIFT;
    p->slot = p->round = UINT64_MAX;
    p->nap_ns = 2 * second;
    enter_phase(p, now, PILOT_SLEEPS);
}

struct pilot_cost pilot_cost(const struct pilot *p, uint64_t now)
{
    if (p->phase != PILOT_EXPLORES || p->rests)
        return (struct pilot_cost){p->spent_ns, now - p->began};
    const struct pilot_cost *before = &p->costs[p->arm];
    return (struct pilot_cost){before->ns + p->spent_ns - p->spent_before, before->of_ns + now - p->slot_began};
}

void pilot_spent_once(struct pilot *p, uint64_t ns)
{
    p->spent_ns += ns;
    p->spent_before += ns;
}

struct trial_gain pilot_gain(const struct pilot *p)
{
    struct trial_gain proof = trial_gain(&p->proof, p->kept, 0);
    return p->kept && proof.rounds >= PROOFS ? proof : p->gain;
}
