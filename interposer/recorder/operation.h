/*
 * What repeats, interned: an iterative program does the same operations again and again, so a record is an operation's id
 * and a few numbers. An operation is what is known at the post or of a blocking call; an outcome adds what is known when
 * a request ends.
 */
#ifndef LAPSCOPE_OPERATION_H
#define LAPSCOPE_OPERATION_H

#include "call.h"
#include "callsite.h"
#include "thread.h"

struct operation_key {                 /* compared as bytes: no padding */
    uint64_t bytes, actual_bytes;
    uint32_t path, comm;
    int32_t peer, tag;                 /* as posted: comm ranks and tags, or constants of spool.h */
    int32_t source, actual_tag;        /* what came: the same as posted but for receives */
    uint16_t call;
    uint8_t kind;                      /* enum spool_kind */
    uint8_t zero[5];
};

struct outcome_key {
    uint64_t bytes;
    uint32_t operation;
    int32_t source, tag;
    uint8_t ended;                     /* enum spool_ended */
    uint8_t zero[3];
};

struct outcome {
    uint64_t hash;
    struct outcome_key key;
    uint32_t id;
};

struct operation {                     /* in the arena: stays where it is */
    uint64_t hash;
    struct operation_key key;
    uint32_t id;
    int32_t peer_world;                /* world rank of key.peer; -1 where there is none */
    struct outcome last_outcome;       /* of requests that the posting thread itself completed; id 0: none yet */
};

struct operation *operation_intern_slow(struct thread *t, struct operation **last, const struct operation_key *key,
                                        int32_t peer_world);
uint32_t outcome_intern_slow(struct thread *t, struct operation *own, const struct outcome_key *key);

/* Field by field: a key that has just been put together lies in registers, and comparing it as bytes would first have to
 * wait for its narrow stores to reach memory. */
static inline int same_operation(const struct operation_key *known, struct operation_key key)
{
    return ((known->bytes ^ key.bytes) | (known->actual_bytes ^ key.actual_bytes) | (known->path ^ key.path) |
            (known->comm ^ key.comm) | (uint32_t)(known->peer ^ key.peer) | (uint32_t)(known->tag ^ key.tag) |
            (uint32_t)(known->source ^ key.source) | (uint32_t)(known->actual_tag ^ key.actual_tag) |
            (uint32_t)(known->call ^ key.call) | (uint32_t)(known->kind ^ key.kind)) == 0;
}

static inline int same_outcome(const struct outcome_key *known, struct outcome_key key)
{
    return ((known->bytes ^ key.bytes) | (known->operation ^ key.operation) | (uint32_t)(known->source ^ key.source) |
            (uint32_t)(known->tag ^ key.tag) | (uint32_t)(known->ended ^ key.ended)) == 0;
}

/* The interned operation; NULL when there is no memory or no spool left. `last` remembers it for the next time. */
static inline struct operation *operation_of(struct thread *t, struct operation **last, struct operation_key key,
                                             int32_t peer_world)
{
    if (LIKELY(*last && same_operation(&(*last)->key, key)))
        return *last;
    struct operation_key in_memory = key;
    return operation_intern_slow(t, last, &in_memory, peer_world);
}

/* The id of an outcome; 0 when it could not be kept. `own`: the operation when `t` itself posted it, else NULL. */
static inline uint32_t outcome_of(struct thread *t, struct operation *own, struct outcome_key key)
{
    if (LIKELY(own && own->last_outcome.id && same_outcome(&own->last_outcome.key, key)))
        return own->last_outcome.id;
    struct outcome_key in_memory = key;
    return outcome_intern_slow(t, own, &in_memory);
}

#endif
