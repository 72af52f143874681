/*
 * Communicators, and the groups behind windows and files: who their members are in MPI_COMM_WORLD, and an identity that
 * all members agree on without talking.
 */
#ifndef LAPSCOPE_COMM_H
#define LAPSCOPE_COMM_H

#include "../base/mpi_api.h"
#include "message.h"
#include "thread.h"

#define COMM_GONE UINT64_MAX     /* no MPI's handle */

struct comm {
    struct comm *next;           /* in its bucket */
    uint64_t key;                /* handle; COMM_GONE from comm_forget on, where operations may still point here */
    uint64_t identity;
    uint32_t ordinal;
    uint32_t id;                 /* in the spool */
    int inter;
    int is_known;                /* who its members are */
    int size, remote_size, rank;
    int destinations;            /* of neighborhood collectives; -1: not asked for yet */
    const int32_t *world_of;     /* local group, then remote group; NULL: comm ranks are world ranks */
};

extern unsigned comm_generation; /* raised when a handle may come to mean another communicator */

/* Learns a communicator that `made_by` has just made from `parent` (NULL where its members have no common one). `salt`
 * tells apart what several threads may make from one parent at once. */
void comm_define(struct thread *t, struct scope scope, const char *made_by, const struct comm *parent, uint64_t salt);
/* The program has given it a name. */
void comm_named(struct thread *t, MPI_Comm handle);
/* The handle is about to be freed. */
void comm_forget(uint64_t key);
/* The communicator behind a handle, learned now if it was made unseen; NULL for null handles and on no memory. */
struct comm *comm_lookup_slow(struct thread *t, struct scope scope);

/* The same without asking MPI anything: NULL also for a communicator not met before. */
struct comm *comm_known_slow(uint64_t key);

/* Whom ranks are counted in: MPI_COMM_WORLD, or where there are only sessions the group of mpi://WORLD. MPI_GROUP_NULL
 * when that session ends. */
void comm_set_world(MPI_Group world);

/* Ranks that this one sends to in neighborhood collectives. */
int comm_destinations(struct comm *comm, MPI_Comm handle);

/* A further word of what `salt` is made of: the tag of MPI_Comm_create_from_group. */
static inline uint64_t text_hash(const char *text, size_t length)
{
    while (length > 0 && text[length - 1] == ' ') /* as Fortran pads it */
        length--;
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)text[i]) * 0x100000001b3u;
    return hash;
}

static inline struct comm *comm_known(struct thread *t, struct scope scope)
{
    unsigned at = (unsigned)((scope.key * 0x9e3779b97f4a7c15u) >> 60) % COMM_CACHE;
    if (LIKELY(t->comms[at].key == scope.key && t->comms[at].generation == comm_generation && t->comms[at].comm))
        return t->comms[at].comm;
    return scope.kind == SCOPE_NONE ? NULL : comm_known_slow(scope.key);
}

static inline struct comm *comm_of(struct thread *t, struct scope scope)
{
    unsigned at = (unsigned)((scope.key * 0x9e3779b97f4a7c15u) >> 60) % COMM_CACHE;
    if (LIKELY(t->comms[at].key == scope.key && t->comms[at].generation == comm_generation && t->comms[at].comm))
        return t->comms[at].comm;
    struct comm *comm = comm_lookup_slow(t, scope);
    t->comms[at].key = scope.key;
    t->comms[at].generation = comm_generation;
    t->comms[at].comm = comm;
    return comm;
}

static inline const struct comm *comm_of_message(struct thread *t, const struct message *message)
{
    return LIKELY(!message->comm) ? comm_of(t, message->scope) : message->comm;
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
