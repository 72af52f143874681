/*
 * What repeats, interned: an iterative program does the same operations again and again, so a record is an operation's
 * id and a few numbers. An operation is what is known at the post or of a blocking call; an outcome adds what is known
 * when a request ends.
 *
 * A post is compared with the operation last posted from its call site, then with the one that followed it the last
 * time, as loops over neighbours post the same ones in turn. Only then is anything looked up. Entries of the live table
 * are not prefetched: that gained nothing.
 */
#ifndef LAPSCOPE_OPERATION_H
#define LAPSCOPE_OPERATION_H

#include "../base/call.h"
#include "callsite.h"
#include "comm.h"
#include "message.h"
#include "sample.h"
#include "thread.h"

#include <stddef.h>
#include <string.h>

struct operation_key {                 /* hashed as words: no padding */
    uint64_t bytes, actual_bytes;
    uint32_t path, comm;
    int32_t peer, tag;                 /* as posted: comm ranks and tags, or constants of spool.h */
    int32_t source, actual_tag;        /* what came: the same as posted but for receives */
    uint32_t related;                  /* its id; 0: none */
    uint16_t call;
    uint8_t kind;                      /* enum spool_kind */
    uint8_t coarse;                    /* enum spool_detail: what it stands for differs in tag, then in bytes, then in peer */
};

struct outcome_key {
    uint64_t bytes;
    uint32_t operation, receive_operation;
    int32_t source, tag;
    uint8_t ended;                     /* enum spool_ended */
    uint8_t zero[7];
};

struct outcome {
    uint64_t hash;
    struct outcome_key key;
    uint32_t id;
};

/* What a status tells of an operation's request that its post did not. */
enum told { TOLD_NOTHING, TOLD_RECEIVED, TOLD_OTHER };

struct operation {                     /* in the arena: stays where it is */
    uint64_t hash;
    struct operation_key key;
    uint32_t id;
    int32_t peer_world;                /* world rank of key.peer; -1 where there is none */
    enum told told;
    const struct comm *comm;
    const struct operation *related;   /* of MPI_Start: what made the request; of requests that also receive: that half, as posted */
    struct inject_site *inject_site;   /* see inject.h; NULL: not met */
    struct operation *followed_by;     /* what was posted after it from its call site; NULL: not known */
    struct skipped skipped;
    struct spool_tally *last_summary;  /* of requests without rows that the posting thread itself completed */
    struct outcome last_outcome;       /* of requests that the posting thread itself completed; id 0: none yet */
};

/* What was asked for, and what came. */
struct exchange {
    const struct message *posted, *actual;
};

struct operation *operation_intern_slow(struct thread *t, struct operation **last, enum call call,
                                        uint32_t path, const struct comm *comm,
                                        const struct message *posted, const struct message *actual);

/* The interned operation; NULL when there is no memory or no spool left. `last` remembers it for the next time. No key
 * is put together for the comparison: its narrow stores would have to reach memory before it could be read as a whole.
 */
static inline struct operation *operation_of(struct thread *t, struct operation **last, enum call call,
                                             uint32_t path, const struct comm *comm,
                                             const struct message *posted, const struct message *actual)
{
    const struct operation *known = *last;
    if (UNLIKELY(!known))
        return operation_intern_slow(t, last, call, path, comm, posted, actual);
    const struct operation_key *key = &known->key;
    uint64_t wide = (key->bytes ^ posted->bytes) | (key->actual_bytes ^ actual->bytes) |
                    ((uintptr_t)known->related ^ (uintptr_t)posted->related);
    uint32_t narrow = (key->path ^ path) | (key->comm ^ (comm ? comm->id : 0)) |
                      (uint32_t)(key->peer ^ posted->peer) | (uint32_t)(key->tag ^ posted->tag) |
                      (uint32_t)(key->source ^ actual->peer) | (uint32_t)(key->actual_tag ^ actual->tag) |
                      (key->call ^ (uint32_t)call) | (key->kind ^ (uint32_t)posted->kind);
    if (LIKELY((wide | narrow) == 0))
        return *last;
    return operation_intern_slow(t, last, call, path, comm, posted, actual);
}

_Static_assert(offsetof(struct operation_key, kind) == offsetof(struct operation_key, call) + 2, "one word");

static inline uint32_t operation_call_and_kind(const struct operation_key *key)
{
    uint32_t word;
    memcpy(&word, (const char *)key + offsetof(struct operation_key, call), sizeof word);
    return word & 0xffffff;
}

/* Whether the operation, last posted from a call site, is posted from there again. What posts ask for is all they know,
 * so what came need not be compared, nor what a call site is. */
static inline int operation_repeats(const struct operation *known, enum call call, const struct message *message)
{
    if (UNLIKELY(!known || !known->comm))
        return 0;
    const struct operation_key *key = &known->key;
    uint64_t wide = (key->bytes ^ message->bytes) | (known->comm->key ^ message->scope.key) |
                    ((uintptr_t)known->related ^ (uintptr_t)message->related) | (uintptr_t)message->receive;
    uint32_t narrow = (uint32_t)(key->peer ^ message->peer) | (uint32_t)(key->tag ^ message->tag) |
                      (operation_call_and_kind(key) ^ ((uint32_t)call | (uint32_t)message->kind << 16));
    return (wide | narrow) == 0;
}

uint32_t outcome_intern_slow(struct thread *t, struct operation *own, const struct outcome_key *key);

/* The operation as one of the thread's own, of a message that came from there. */
struct operation *operation_as(struct thread *t, const struct operation *operation, int32_t source, int32_t tag);

/* The id of an outcome; 0 when it could not be kept. `own`: the operation when `t` itself posted it, else NULL. */
static inline uint32_t outcome_of(struct thread *t, struct operation *own, const struct outcome_key *key)
{
    const struct outcome *last = own ? &own->last_outcome : NULL;
    if (LIKELY(last && last->id && last->key.bytes == key->bytes && last->key.source == key->source &&
               last->key.tag == key->tag && last->key.ended == key->ended &&
               last->key.receive_operation == key->receive_operation))
        return last->id;
    return outcome_intern_slow(t, own, key);
}

#endif
