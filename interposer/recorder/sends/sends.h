/*
 * LAPSCOPE_BUFFER_SENDS: standard-mode sends go from copies of ours, so that the application's own request is complete at once.
 *
 * MPI may buffer a standard send, or wait for the receiver (MPI-4.1 3.4); so may we. The copy is sent within the application's own
 * call, which keeps messages in order. What the application gets is the request of a send of nothing to MPI_PROC_NULL, made by the
 * function that it has called: complete, not null, good for every call that takes a request.
 */
#ifndef LAPSCOPE_SENDS_H
#define LAPSCOPE_SENDS_H

#include "../base/mpi_api.h"
#include "copies.h"

struct thread;

/* A send as the application has asked for it. */
struct asked_send {
    const void *buffer; /* NULL: what is sent cannot be read by its address */
    int64_t count;
    MPI_Datatype type;
    int dest, tag;
    MPI_Comm comm;
};

/* Reads the options. Returns 0 when no sends are to be copied. */
int sends_wanted(void);

/* The data, copied; NULL: the send has to go as it is. Asks MPI of the datatype alone: what else may be wrong with the arguments
 * shows when the caller then sends nothing to MPI_PROC_NULL with them. */
struct copy *sends_copy(const struct asked_send *send);

/* What became of a copy. */
enum sent {
    SENT,       /* it is on its way, or there already */
    SENT_NOT,   /* it is released: the send has to go as it is */
    SENT_FAILED /* likewise, but MPI has told the application's error handler: `error` is what the call returns */
};

/* Sends it, when `error` is that of a send of nothing that has gone well. */
enum sent sends_send(struct copy *copy, const struct asked_send *send, int *error);

/* Whether copies are under way, behind a look at some of them. From within a call of the application's. */
int sends_under_way(void);

/* A communicator is about to be freed; or disconnected, which MPI does when all that was sent on it has arrived. */
void sends_comm_freed(MPI_Comm comm);
void sends_comm_ends(MPI_Comm comm);

/* From here on sends go as they are. A constant. */
void sends_stop(const char *why);

/* MPI is about to end: waits for every copy. */
void sends_end(void);

/* For the record: at the start, once the job is known, and behind MPI_Finalize. */
void sends_start_record(struct thread *t, uint64_t seed);
void sends_record(struct thread *t);

#endif
