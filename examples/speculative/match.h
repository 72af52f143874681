/*
 * Which message belongs to which receive: in the order in which they were sent and posted, by tag. Receives that have announced
 * themselves wait for the send of one sequence number, as others of their tag may overtake what is being written to them.
 */
#ifndef MATCH_H
#define MATCH_H

#include "layer.h"

/* A message that came before its receive, with its data where it has some. */
struct arrival {
    struct arrival *next;
    struct message message;
    char data[];
};

/* Forgets everything. */
void start_matching(void);

/* The number of this send within its tag. */
uint64_t next_send(int tag);
/* How many sends of the tag were made. */
uint64_t sends_made(int tag);

/* The receive for an envelope (EAGER, RTS), off the list of posted ones; NULL: there is none yet. */
struct request *receive_for(const struct message *envelope);
void keep_arrival(const struct message *envelope, const void *data);

/* The earliest arrival for a receive that is being posted; the caller frees it. NULL: it is among the posted ones now. */
struct arrival *arrival_for(struct request *receive);

/* Off the list of posted ones: what was written to it needs no envelope. */
void match_written(struct request *receive);

/* Whether posted receives of any tag wait. */
int wildcards_wait(void);
/* Which send of its tag a receive gets that was just posted, behind no wildcard. */
uint64_t sequence_of(const struct request *receive);

#endif
