/*
 * What is recorded of a long run. Up to half of LAPSCOPE_MAX_MB everything is. After that time is cut into slots of the
 * wall clock, and records are kept in slots drawn at random, the same on all ranks: a hash of the job and the slot's
 * number is compared with a density. The density falls to a quarter (a stage) whenever half of what was left of the limit is
 * used, and the slots of a later stage are among those of the earlier ones, so that ranks in different stages still share
 * slots. Everything else is summed up by call site and size (tally.h).
 *
 * A thread goes from one slot to the next at the begin of a blocking or completing call; a request belongs to the slot of
 * its post, whenever it ends. What takes part in matching, messages and collectives, is counted where it is left out: so that
 * the k-th send still meets the k-th receive.
 *
 * With halves in place of quarters each stage would last as long as the first; so each lasts twice as long as the one
 * before. Slots are 134 ms: long beside a message, short beside what fills the spool of a busy rank. Numbers of
 * messages in every record, in place of counts of what was left out, would cost a table look-up a message. What is
 * under way when recording goes on has a record of its own, of where it belongs; a message whose place cannot be told
 * is not matched.
 */
#ifndef LAPSCOPE_SAMPLE_H
#define LAPSCOPE_SAMPLE_H

#include "thread.h"

/* What was left out of an operation since its thread last recorded everything; a part of struct operation. */
struct skipped {
    uint64_t count, first, last;   /* when they were posted: ticks */
    struct skipped *next;          /* of the thread's others */
    uint32_t operation;
    uint8_t kind;                  /* enum spool_kind */
    uint8_t is_coarse;             /* it stands for several lanes of messages */
};

/* Whether calls may have ended requests that are left out together with others. */
extern int sample_leaves_out __attribute__((visibility("hidden")));

/* Before the first record; the seed is the same on all ranks of the job. */
void sample_start(uint64_t seed);
/* At the end of the recording: what is to be said of the slot under way. */
void sample_end(struct thread *t);

/* From now on something may be. */
void sample_begin_to_leave_out(void);

/* Brings a thread into the slot of `now` (ticks). */
void sample_look(struct thread *t, uint64_t now);

/* What was posted at `begin` gets no record. */
void sample_left_out(struct thread *t, struct skipped *skipped, uint64_t begin);

/* The thread has made its last call: nothing of it may be forgotten. */
void sample_thread_ended(struct thread *t);

/* For tests: whether a slot is recorded in a stage, and the stage of a spool of so many bytes. */
int sample_has(uint64_t slot, unsigned stage);
unsigned sample_stage(uint64_t bytes, uint64_t max_bytes);

enum { SAMPLE_SLOT_NS = 1 << 27, SAMPLE_STAGES = SPOOL_STAGES /* from that on nothing is recorded */ };

#endif
