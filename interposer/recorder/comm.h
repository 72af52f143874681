/*
 * Communicators: who their members are in MPI_COMM_WORLD, and an identity that all members agree on without talking.
 */
#ifndef LAPSCOPE_COMM_H
#define LAPSCOPE_COMM_H

#include "mpi_api.h"
#include "thread.h"

struct comm {
    struct comm *next;           /* in its bucket */
    uint64_t key;                /* handle; 0 length of life ends at comm_forget */
    uint32_t id;                 /* in the spool */
    int inter;
    int size, remote_size, rank;
    const int32_t *world_of;     /* local group, then remote group; NULL: comm ranks are world ranks */
};

extern unsigned comm_generation; /* raised when a handle may come to mean another communicator */

/* Learns a communicator that `call` has just made. */
void comm_define(struct thread *t, MPI_Comm handle, const char *made_by);
/* The handle is about to be freed. */
void comm_forget(MPI_Comm handle);
/* The communicator behind a handle, learned now if it was made unseen; NULL for MPI_COMM_NULL and on no memory. */
struct comm *comm_lookup_slow(struct thread *t, MPI_Comm handle);

/* The same without asking MPI anything: NULL also for a communicator not met before. */
struct comm *comm_known_slow(MPI_Comm handle);

static inline struct comm *comm_known(struct thread *t, MPI_Comm handle)
{
    uint64_t key = comm_key(handle);
    unsigned at = (unsigned)((key * 0x9e3779b97f4a7c15u) >> 60) % COMM_CACHE;
    if (LIKELY(t->comms[at].key == key && t->comms[at].generation == comm_generation && t->comms[at].comm))
        return t->comms[at].comm;
    return comm_known_slow(handle);
}

static inline struct comm *comm_of(struct thread *t, MPI_Comm handle)
{
    uint64_t key = comm_key(handle);
    unsigned at = (unsigned)((key * 0x9e3779b97f4a7c15u) >> 60) % COMM_CACHE;
    if (LIKELY(t->comms[at].key == key && t->comms[at].generation == comm_generation && t->comms[at].comm))
        return t->comms[at].comm;
    struct comm *comm = comm_lookup_slow(t, handle);
    t->comms[at].key = key;
    t->comms[at].generation = comm_generation;
    t->comms[at].comm = comm;
    return comm;
}

/* World rank of the process that `rank` names as a peer on this communicator; -1 for wildcards, MPI_PROC_NULL and
 * processes outside MPI_COMM_WORLD. */
static inline int32_t comm_world_rank(const struct comm *comm, int rank)
{
    if (rank < 0 || !comm || rank >= (comm->inter ? comm->remote_size : comm->size))
        return -1;
    return comm->world_of ? comm->world_of[comm->inter ? comm->size + rank : rank] : rank;
}

/* Size of the group that collectives exchange data with: the remote group of an inter-communicator. */
static inline int comm_other_size(const struct comm *comm)
{
    return !comm ? 0 : comm->inter ? comm->remote_size : comm->size;
}

#endif
