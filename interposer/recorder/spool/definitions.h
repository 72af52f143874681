/* All definitions of a spool by id, and its clock: what is needed before its hot records can be understood. */
#ifndef LAPSCOPE_SPOOL_DEFINITIONS_H
#define LAPSCOPE_SPOOL_DEFINITIONS_H

#include "reader.h"

/* A table by id from 1; entry 0 and absent ids are all zero. */
struct id_table {
    void *entries;
    size_t entry_bytes, size;
};

/* Payloads are in the spool, unaligned. */
struct meta_definition {
    struct spool_meta head;
    const unsigned char *key, *value;
};
struct module_definition {
    struct spool_module head;
    const unsigned char *path, *build_id;
};
struct path_definition {
    struct spool_path head;
    const unsigned char *frames;
};
struct comm_definition {
    struct spool_comm head;
    const unsigned char *name, *members;
};
struct mark_name_definition {
    struct spool_mark_name head;
    const unsigned char *name;
};
struct thread_definition {
    int known;                  /* has a chunk */
    int64_t tid;                /* 0: killed before it could say */
    uint64_t mpi_ticks, calls;  /* of its state */
};

struct spool_definitions {
    struct id_table metas;      /* struct meta_definition, numbered as they are found */
    uint64_t meta_count;
    struct id_table modules, paths, comms;
    struct id_table operations; /* struct spool_operation */
    struct id_table outcomes;   /* struct spool_outcome */
    struct id_table mark_names; /* struct mark_name_definition */
    struct id_table threads;    /* struct thread_definition, by number plus 1 */
    unsigned counter_count;     /* of those that are counted, as SPOOL_COUNTERS speaks of them */
    unsigned counters[SPOOL_MAX_COUNTERS]; /* their numbers */
    uint64_t ns_per_tick;       /* fixed point, 2^-56 */
    uint64_t first_ticks;
};

/* The entry of an id, made when it is new; NULL when out of memory. */
void *id_table_make(struct id_table *table, uint64_t id);
/* The entry of an id; NULL beyond the table. */
void *id_table_at(const struct id_table *table, uint64_t id);

/* Returns 0, or -1 when out of memory. Definitions that cannot be right are counted as damage and left out. */
int spool_definitions_collect(struct spool_definitions *definitions, struct spool_file *file);
void spool_definitions_free(struct spool_definitions *definitions);

/* Whether a META has that key. */
int spool_meta_is(const struct meta_definition *meta, const char *key);

/* What stands behind `prefix` in the key of a META, and how much of it; NULL when the key begins otherwise. */
const char *spool_meta_behind(const struct meta_definition *meta, const char *prefix, size_t *bytes);

/* The value of a META as `count` texts with tabs between them; not terminated, empty where there are fewer. */
void spool_meta_fields(const struct meta_definition *meta, const char **texts, size_t *bytes, int count);

enum counter_text { COUNTER_NAME, COUNTER_UNIT, COUNTER_PROBLEM, COUNTER_DESCRIPTION, COUNTER_TEXTS };

/* A counter as its META says; the texts are not terminated. */
struct counter_definition {
    unsigned number;
    const char *texts[COUNTER_TEXTS];
    size_t bytes[COUNTER_TEXTS];
};

/* Returns 0 when a META is not of a counter. */
int spool_counter(const struct meta_definition *meta, struct counter_definition *counter);

/* The entry of an id; NULL when the spool does not define it. */
const struct spool_operation *spool_operation_of(const struct spool_definitions *definitions, uint64_t id);
const struct spool_outcome *spool_outcome_of(const struct spool_definitions *definitions, uint64_t id);
const struct comm_definition *spool_comm_of(const struct spool_definitions *definitions, uint64_t id);
const struct mark_name_definition *spool_mark_name_of(const struct spool_definitions *definitions, uint64_t id);
int spool_has_path(const struct spool_definitions *definitions, uint64_t id);
int spool_has_thread(const struct spool_definitions *definitions, uint64_t number);

enum { WORLD_RANK_UNKNOWN = -1 };

/* World rank of member `at` of a communicator that lists them: the local group, then the remote group. */
int64_t spool_member(const struct comm_definition *comm, uint64_t at);
/* World rank of the peer that a communicator's rank names; WORLD_RANK_UNKNOWN for wildcards and the like. */
int64_t spool_peer_world(const struct comm_definition *comm, int32_t peer);

/* What readers of databases believe (crates/data/src/db/check.rs): times up to 2^56 ns, counts up to one a microsecond
 * for ten years. */
#define SPOOL_LONGEST_NS (INT64_C(1) << 56)
#define SPOOL_LATEST_EPOCH_NS INT64_C(7000000000000000000)
#define SPOOL_MOST ((uint64_t)1 << 48)
#define SPOOL_MOST_BYTES (UINT64_MAX >> 2)

/* In units of 2^-56, by the latest reading of both clocks. */
uint64_t spool_ns_per_tick(const struct spool_file_header *header);

/* A duration in nanoseconds. Exact to the clock's calibration: the product has 128 bits. No sane value reaches the
 * bounds (2.3 years); they keep sums of damaged ones from overflowing. */
static inline int64_t spool_ns(const struct spool_definitions *definitions, uint64_t ticks)
{
    const uint64_t most_ticks = (uint64_t)1 << 56, most_ns = SPOOL_LONGEST_NS;
    ticks = ticks < most_ticks ? ticks : most_ticks;
    uint64_t ns = (uint64_t)((unsigned __int128)ticks * definitions->ns_per_tick >> 56);
    return (int64_t)(ns < most_ns ? ns : most_ns);
}

/* A moment in nanoseconds since the rank's epoch; 0 for what was before it. */
static inline int64_t spool_moment_ns(const struct spool_definitions *definitions, uint64_t ticks)
{
    return ticks > definitions->first_ticks ? spool_ns(definitions, ticks - definitions->first_ticks) : 0;
}

/* From one moment to a later one; 0 when it is not later. */
static inline int64_t spool_between_ns(const struct spool_definitions *definitions, uint64_t begin, uint64_t end)
{
    return end > begin ? spool_ns(definitions, end - begin) : 0;
}

#endif
