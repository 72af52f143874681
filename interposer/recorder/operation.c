#include "operation.h"

#include "arena.h"
#include "intern.h"

_Static_assert(sizeof(struct operation_key) % 8 == 0 && sizeof(struct outcome_key) % 8 == 0, "keys are hashed by words");

static uint32_t operation_count, outcome_count; /* ids are per process, so that any thread can complete any request */

static struct operation *define_operation(struct thread *t, const struct operation_key *key, uint64_t hash, int32_t peer_world)
{
    struct operation *operation = arena_alloc(sizeof *operation);
    if (!operation)
        return NULL;
    operation->hash = hash;
    operation->key = *key;
    operation->peer_world = peer_world;
    operation->id = __atomic_add_fetch(&operation_count, 1, __ATOMIC_RELAXED);
    struct spool_operation head = {operation->id, key->call,  key->kind,   key->path,       key->comm,        key->peer,
                                   key->tag,      key->bytes, key->source, key->actual_tag, key->actual_bytes};
    return spool_define(&t->stream, SPOOL_OPERATION, &head, sizeof head, NULL, 0, NULL, 0) ? operation : NULL;
}

struct operation *operation_intern_slow(struct thread *t, struct operation **last, enum call call,
                                        const struct callsite *site, const struct comm *comm,
                                        const struct message *posted, const struct message *actual)
{
    const struct operation_key key = {.bytes = posted->bytes,
                                      .actual_bytes = actual->bytes,
                                      .path = site->path,
                                      .comm = comm ? comm->id : 0,
                                      .peer = posted->peer,
                                      .tag = posted->tag,
                                      .source = actual->peer,
                                      .actual_tag = actual->tag,
                                      .call = (uint16_t)call,
                                      .kind = (uint8_t)posted->kind};
    uint64_t hash = intern_hash(&key, sizeof key);
    void **slot = intern_find(&t->operations, hash, &key, sizeof key);
    if (!slot)
        return NULL;
    if (!*slot) {
        *slot = define_operation(t, &key, hash, comm_world_rank(comm, posted->peer));
        t->operations.count += *slot != NULL;
    }
    return *last = *slot;
}

static struct outcome *define_outcome(struct thread *t, const struct outcome_key *key, uint64_t hash)
{
    struct outcome *outcome = arena_alloc(sizeof *outcome);
    if (!outcome)
        return NULL;
    *outcome = (struct outcome){hash, *key, __atomic_add_fetch(&outcome_count, 1, __ATOMIC_RELAXED)};
    struct spool_outcome head = {outcome->id, key->operation, key->source, key->tag, key->bytes, key->ended};
    return spool_define(&t->stream, SPOOL_OUTCOME, &head, sizeof head, NULL, 0, NULL, 0) ? outcome : NULL;
}

uint32_t outcome_intern_slow(struct thread *t, struct operation *own, uint32_t operation, int32_t source, int32_t tag,
                             uint64_t bytes, enum spool_ended ended)
{
    const struct outcome_key key = {
        .bytes = bytes, .operation = operation, .source = source, .tag = tag, .ended = (uint8_t)ended};
    uint64_t hash = intern_hash(&key, sizeof key);
    void **slot = intern_find(&t->outcomes, hash, &key, sizeof key);
    if (!slot)
        return 0;
    if (!*slot) {
        *slot = define_outcome(t, &key, hash);
        t->outcomes.count += *slot != NULL;
    }
    const struct outcome *outcome = *slot;
    if (own && outcome)
        own->last_outcome = *outcome;
    return outcome ? outcome->id : 0;
}
