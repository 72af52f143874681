/* All definitions of a spool by id, and its clock: what is needed before its hot records can be understood. */
#ifndef LAPSCOPE_SPOOL_DEFINITIONS_H
#define LAPSCOPE_SPOOL_DEFINITIONS_H

#include "spool_reader.h"

/* A table by id from 1; entry 0 and absent ids are all zero. */
struct id_table {
    void *entries;
    size_t entry_bytes, size;
};

struct comm_definition {
    struct spool_comm head;
    const unsigned char *name, *members; /* in the spool, unaligned */
};

struct spool_definitions {
    struct id_table operations; /* struct spool_operation */
    struct id_table outcomes;   /* struct spool_outcome */
    struct id_table comms;      /* struct comm_definition */
    uint64_t ns_per_tick;       /* fixed point, 2^-56 */
    uint64_t first_ticks;
};

/* Returns 0, or -1 when out of memory. */
int spool_definitions_collect(struct spool_definitions *definitions, struct spool_file *file);
void spool_definitions_free(struct spool_definitions *definitions);

/* The entry of an id; NULL when the spool does not define it. */
const struct spool_operation *spool_operation_of(const struct spool_definitions *definitions, uint64_t id);
const struct spool_outcome *spool_outcome_of(const struct spool_definitions *definitions, uint64_t id);
const struct comm_definition *spool_comm_of(const struct spool_definitions *definitions, uint64_t id);

enum { WORLD_RANK_UNKNOWN = -1 };

/* World rank of member `at` of a communicator: the local group, then the remote group. */
int64_t spool_member(const struct comm_definition *comm, uint64_t at);
/* World rank of the peer that a communicator's rank names; WORLD_RANK_UNKNOWN for wildcards and the like. */
int64_t spool_peer_world(const struct comm_definition *comm, int32_t peer);

/* A duration in nanoseconds. */
static inline int64_t spool_ns(const struct spool_definitions *definitions, uint64_t ticks)
{
    return (int64_t)((unsigned __int128)ticks * definitions->ns_per_tick >> 56);
}

/* A moment in nanoseconds since the rank's epoch. */
static inline int64_t spool_moment_ns(const struct spool_definitions *definitions, uint64_t ticks)
{
    return ticks > definitions->first_ticks ? spool_ns(definitions, ticks - definitions->first_ticks) : 0;
}

#endif
