/*
 * Memory that sends go from when they have been copied, and what of it is still being sent. Knows nothing of MPI: a request
 * is a number, and who asks for those that are over says how to tell.
 *
 * Memory is kept for the next send of about that size, in all no more than a limit. Any thread may call; no lock is held
 * while the caller's function is called, as that may call MPI, whose error handlers may leave by longjmp.
 */
#ifndef LAPSCOPE_COPIES_H
#define LAPSCOPE_COPIES_H

#include <stddef.h>
#include <stdint.h>

struct copy {
    struct copy *next, *previous; /* under way, or kept for later */
    unsigned size_class;
    uint64_t request, comm;       /* handles; comm 0: freed since */
    uint64_t bytes;               /* of data */
    int64_t begin;                /* of the data, from where their datatype counts */
    void *data;
};

/* What copies may take together, what is kept for later included. */
void copies_limit(uint64_t bytes);

/* Memory for so many bytes; NULL when that would be beyond the limit, or there is none. */
struct copy *copy_take(uint64_t bytes);

/* It is no longer needed. */
void copy_release(struct copy *copy);

/* It is being sent, as `request`. */
void copy_sent(struct copy *copy, uint64_t request, uint64_t comm);

/* Whether a copy is over; called by one thread at a time. */
typedef int copy_is_over_fn(struct copy *copy);

/* Releases those that are over among up to `most` of those under way, going on where it stopped the last time; with `comm` not 0
 * only those of that communicator. Returns whether some may be left of those: nothing is done while another thread is at it. */
int copies_reap(unsigned most, uint64_t comm, copy_is_over_fn *is_over);

/* The communicator's handle may be given out again. */
void copies_forget_comm(uint64_t comm);

/* How many are under way, and the most memory that copies ever took at once. */
unsigned copies_under_way(void);
uint64_t copies_most_bytes(void);

/* Gives back what is kept for later. */
void copies_end(void);

#endif
