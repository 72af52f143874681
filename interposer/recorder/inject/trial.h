/*
 * What slots of time tell of ways of injecting that take turns in them: which is the fastest, and by how much.
 *
 * A round has a slot of each way, in an order drawn by chance. What a unit of the program's progress took in each way's
 * slots of a round is compared within that round alone: what drifts over the run is the same for all ways there. The
 * round is the observation, as steps of one slot have their fate in common. Numbers in, numbers out: this file knows
 * neither MPI nor clocks.
 */
#ifndef LAPSCOPE_TRIAL_H
#define LAPSCOPE_TRIAL_H

enum { TRIAL_ARMS = 6, TRIAL_ROUNDS = 48 }; /* at most */

struct trial {
    unsigned arms;                          /* ways; 0 is the program as it is */
    unsigned alive;                         /* bits: those that may still be the best */
    unsigned leader;                        /* the best as far as is known */
    unsigned rounds;                        /* added; the last TRIAL_ROUNDS are kept */
    double took[TRIAL_ROUNDS][TRIAL_ARMS];  /* a unit of progress, in any unit of time; 0: not seen in that round */
};

/* Share of the time of `against` that an arm saves, and its confidence interval; below 0 where it loses. */
struct trial_gain {
    double share, low, high;
    unsigned rounds;                        /* that it was seen in; below 3 there is no interval: -2 to 1 */
};

/* `alive` has bit 0. */
void trial_begin(struct trial *trial, unsigned arms, unsigned alive);

enum { TRIAL_GOES_ON = -1, TRIAL_UNSURE = -2 };

/* One more round. Returns the arm to keep, or that more rounds are needed, or that there were enough of them and none is
 * certain to gain, while the leader may. */
int trial_add(struct trial *trial, const double *took);

/* A round of which nothing is to be decided. */
void trial_note(struct trial *trial, const double *took);

/* The arm cannot be had any more. */
void trial_lose(struct trial *trial, unsigned arm);

/* Of 95 % confidence. */
struct trial_gain trial_gain(const struct trial *trial, unsigned arm, unsigned against);

#endif
