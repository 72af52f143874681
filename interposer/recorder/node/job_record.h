/*
 * LAPSCOPE_RECORD=job: the record that the ranks of a node keep together. The first of them writes it each minute from a thread, and
 * another goes on when that one has ended; the last one to end writes it once more. It appears by rename, in a directory that is there
 * and is never made. Whatever fails, nothing is said and the application goes on: the site has asked for records, not the user.
 */
#ifndef LAPSCOPE_JOB_RECORD_H
#define LAPSCOPE_JOB_RECORD_H

#include "../spool/writer.h"

/* Joins the ranks of the node, or is the first. Returns the room for this rank's spool, or NULL: nothing can be recorded. The identity
 * is given the job's names. */
const struct spool_memory *job_record_begin(struct spool_identity *identity);

/* The rank records: the one that writes for its node begins to. */
void job_record_start(void);

/* Now and then, from a call of MPI: goes on in place of one that has ended. `now` in ticks. */
void job_record_look(uint64_t now);

/* The rank has ended, and its spool says how. */
void job_record_end(void);

/* In a child of fork. */
void job_record_forget(void);

#endif
