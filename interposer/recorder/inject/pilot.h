/*
 * LAPSCOPE_INJECT=auto: when to look whether injection helps, what is in force at a moment, and why.
 *
 * It is told of the program's steps, at times of the wall clock, and says which arm (way of injecting) is in force.
 * Time is cut into slots, whose length is a power of two nanoseconds, and several slots are a round. The wall clock, the
 * length of the program's steps and a seed that is the same on all ranks say what slot has which arm: so ranks whose steps
 * are alike change arms together and decide at the same time, without a message. This file knows neither MPI nor the
 * recorder.
 */
#ifndef LAPSCOPE_PILOT_H
#define LAPSCOPE_PILOT_H

#include "trial.h"

#include <stdint.h>

enum pilot_phase {
    PILOT_SLEEPS,    /* nothing is injected */
    PILOT_WATCHES,   /* nothing is injected, and it is seen whether there is computation beside messages */
    PILOT_EXPLORES,  /* arms take turns */
    PILOT_KEEPS      /* one arm, but in one slot of PILOT_PROOF, which goes without */
};

enum pilot_event {
    PILOT_NOTHING_BESIDE, /* there is no computation beside the messages worth mentioning */
    PILOT_EXPLORE,
    PILOT_OFF,            /* no arm gains */
    PILOT_KEEP,           /* an arm does */
    PILOT_CHANGED,        /* the program does something else, or as much of it in another time */
    PILOT_WITHOUT,        /* the gain is gone */
    PILOT_AGAIN,          /* it is time to look again */
    PILOT_IDLE,           /* no large messages any more */
    PILOT_EVENTS
};

enum { PILOT_PROOF = 16, PILOT_DECISIONS = 24, PILOT_CLASSES = 160, PILOT_RECENT = 8 };

struct pilot_decision {
    uint64_t at_ns;                       /* since it began */
    enum pilot_event event;
    unsigned arm, rounds;
    struct trial_gain gain;               /* of PILOT_KEEP and PILOT_WITHOUT */
};

struct pilot_sum {
    uint64_t slots, posts;
    double ns;
};

struct pilot {
    /* said by whoever uses it */
    unsigned arms, usable;                /* usable: bits */
    uint64_t seed;
    unsigned budget;                      /* in percent of the time since it began */
    uint64_t spent_ns;                    /* so far: cost that bought nothing */
    struct pilot_beside { uint64_t ns, pieces; } beside; /* so far: computation beside large messages */
    /* what is in force */
    enum pilot_phase phase;
    unsigned arm, kept;                   /* kept: valid while PILOT_KEEPS */
    /* where in time */
    uint64_t began, phase_began;
    unsigned shift;                       /* a slot is 1 << shift nanoseconds */
    unsigned stretched;                   /* so often slots became longer, as shorter ones told nothing for certain */
    uint64_t slot, round;
    int rested;                           /* in this round the budget was used up */
    int rests;
    int counts;                           /* the slot counts: its arm was in force from its first step on */
    /* steps */
    uint64_t last_post, last_step, first_in_slot, first_in_phase, posts_in_slot, posts_to_last_step, steps_in_phase;
    uint64_t burst;                       /* posts that follow each other sooner are of one step */
    uint32_t classes[PILOT_CLASSES];      /* time in steps by length, in units that shrink */
    struct { double ns; uint64_t posts; } in_round[TRIAL_ARMS];
    double recent[PILOT_RECENT], reference; /* of the arm in force: what a post took, by slots */
    unsigned recent_count;
    /* what was learned */
    struct trial trial, proof;
    struct trial_gain gain;               /* of the arm last kept, when it was chosen */
    struct pilot_beside beside_before;
    uint64_t nap_ns, wake_at;             /* sleeping: until when */
    int goes_on;                          /* then with what was kept */
    uint64_t look_ns, look_at, may_look_at; /* between explorations */
    uint64_t slot_began, spent_before;    /* of the slot under way */
    struct pilot_cost { uint64_t ns, of_ns; } costs[TRIAL_ARMS]; /* of an arm's slots of this exploration, and how long those were */
    double lost_ns[TRIAL_ARMS];           /* against the program as it is, while exploring; negative: gained */
    struct pilot_sum sums[TRIAL_ARMS];
    struct pilot_decision decisions[PILOT_DECISIONS];
    unsigned decided;                     /* the last PILOT_DECISIONS are kept, and the first */
};

/* `arms`, `usable`, `seed` and `budget` are set. */
void pilot_begin(struct pilot *pilot, uint64_t now_ns);

/* A large message is posted at that moment; `is_step`: it is the one that steps are counted by. Sets `arm`. */
void pilot_post(struct pilot *pilot, uint64_t now_ns, int is_step);

/* Steps are counted by something else from now on. */
void pilot_changed(struct pilot *pilot, uint64_t now_ns);

/* No large message was posted for long. */
void pilot_idle(struct pilot *pilot, uint64_t now_ns);

/* The arm cannot be had. */
void pilot_lose(struct pilot *pilot, unsigned arm, uint64_t now_ns);

/* The gain of the arm that is or was last kept: while it was in force, or until there is enough of that, while it was
 * looked for. No rounds: there was none. Rounds that chose an arm do not tell its gain if others can: the best of
 * several looks better than it is. */
struct trial_gain pilot_gain(const struct pilot *pilot);

/* What the arm in force has spent so far, and in what time: of the slots in which it is tried out, or else of all. */
struct pilot_cost pilot_cost(const struct pilot *pilot, uint64_t now_ns);

/* This cost, counted in `spent_ns` from now on, is of no slot: it does not come again. */
void pilot_spent_once(struct pilot *pilot, uint64_t ns);

/* What learning has lost against the program as it is, beside what was spent. */
uint64_t pilot_lost_ns(const struct pilot *pilot);

#endif
