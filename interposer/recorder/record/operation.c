#include "operation.h"

#include "../base/arena.h"
#include "../base/intern.h"
#include "tally.h"

_Static_assert(sizeof(struct operation_key) % 8 == 0 && sizeof(struct outcome_key) % 8 == 0, "keys are hashed by words");

static uint32_t operation_count, outcome_count; /* ids are per process, so that any thread can complete any request */

enum { MOST_OF_JOB = 256 /* that LAPSCOPE_RECORD=job tells apart by path, peer, tag and size: then its memory is used up */ };

static enum spool_detail definition_detail(const struct thread *t)
{
    int is_used_up = t->cells && __atomic_load_n(&operation_count, __ATOMIC_RELAXED) >= MOST_OF_JOB;
    return is_used_up ? SPOOL_DEFINE_LEAST : spool_definition_detail();
}

static enum told told_by_status(const struct operation_key *key, const struct operation *related)
{
    if (key->kind == SPOOL_RECV && key->peer != SPOOL_PROC_NULL) /* see message_received */
        return TOLD_RECEIVED;
    int receives = key->kind == SPOOL_RECV || (key->kind == SPOOL_SEND && related && related->key.kind == SPOOL_RECV);
    return receives || key->kind == SPOOL_IO ? TOLD_OTHER : TOLD_NOTHING;
}

static struct operation *define_operation(struct thread *t, const struct operation_key *key, uint64_t hash,
                                          const struct comm *comm, const struct message *posted)
{
    struct operation *operation = arena_alloc(sizeof *operation);
    if (!operation)
        return NULL;
    operation->hash = hash;
    operation->key = *key;
    operation->comm = comm;
    operation->related = posted->related;
    operation->peer_world = t->stream.full ? -1 : comm_world_rank(comm, key->peer); /* outstanding bytes are of rows */
    operation->told = told_by_status(key, posted->related);
    operation->id = __atomic_add_fetch(&operation_count, 1, __ATOMIC_RELAXED);
    operation->skipped = (struct skipped){.operation = operation->id, .kind = key->kind, .is_coarse = key->coarse != 0};
    struct spool_operation head = {.id = operation->id,
                                   .call = key->call,
                                   .kind = key->kind,
                                   .path = key->path,
                                   .comm = key->comm,
                                   .peer = key->peer,
                                   .tag = key->tag,
                                   .bytes = key->bytes,
                                   .source = key->source,
                                   .actual_tag = key->actual_tag,
                                   .actual_bytes = key->actual_bytes,
                                   .init_operation = posted->receive ? 0 : key->related,
                                   .receive_operation = posted->receive ? key->related : 0};
    return spool_define(&t->stream, SPOOL_OPERATION, &head, sizeof head, NULL, 0, NULL, 0) ? operation : NULL;
}

/* What is left of a key when less is told apart. Bytes become the least of their size class. Paths of LAPSCOPE_RECORD=job come and go,
 * and each request knows its own. */
static struct operation_key coarsened(const struct thread *t, struct operation_key key, enum spool_detail coarse)
{
    key.coarse = (uint8_t)coarse;
    if (coarse >= SPOOL_DEFINE_FEWER)
        key.tag = key.actual_tag = SPOOL_NO_TAG;
    if (coarse >= SPOOL_DEFINE_FEW)
        key.bytes = key.actual_bytes = size_floor(key.actual_bytes);
    if (coarse >= SPOOL_DEFINE_LEAST) {
        key.peer = key.peer == SPOOL_PROC_NULL ? key.peer : SPOOL_NO_PEER;
        key.source = key.peer;
        key.related = 0;
        key.path = t->cells ? 0 : key.path;
    }
    return key;
}

/* NULL when it is not known, and so much detail is not to be defined any more. */
static struct operation *intern_operation(struct thread *t, const struct operation_key *exact, const struct comm *comm,
                                          const struct message *posted, enum spool_detail coarse)
{
    const struct operation_key key = coarse == SPOOL_DEFINE_ALL ? *exact : coarsened(t, *exact, coarse);
    uint64_t hash = intern_hash(&key, sizeof key);
    void **slot = intern_find(&t->operations, hash, &key, sizeof key);
    if (!slot)
        return NULL;
    if (!*slot && definition_detail(t) <= coarse) {
        *slot = define_operation(t, &key, hash, comm, posted);
        t->operations.count += *slot != NULL;
    }
    return *slot;
}

struct operation *operation_intern_slow(struct thread *t, struct operation **last, enum call call,
                                        uint32_t path, const struct comm *comm,
                                        const struct message *posted, const struct message *actual)
{
    const struct operation_key key = {.bytes = posted->bytes,
                                      .actual_bytes = actual->bytes,
                                      .path = path,
                                      .comm = comm ? comm->id : 0,
                                      .peer = posted->peer,
                                      .tag = posted->tag,
                                      .source = actual->peer,
                                      .actual_tag = actual->tag,
                                      .related = posted->related ? posted->related->id : 0,
                                      .call = (uint16_t)call,
                                      .kind = (uint8_t)posted->kind};
    struct operation *known = intern_operation(t, &key, comm, posted, SPOOL_DEFINE_ALL);
    int is_too_much = !known && definition_detail(t) != SPOOL_DEFINE_ALL;
    if (is_too_much)
        sample_begin_to_leave_out();
    for (int coarse = t->cells ? SPOOL_DEFINE_LEAST : SPOOL_DEFINE_FEWER; is_too_much && !known && coarse <= SPOOL_DEFINE_LEAST; coarse++)
        known = intern_operation(t, &key, comm, posted, (enum spool_detail)coarse);
    return *last = known;
}

struct operation *operation_as(struct thread *t, const struct operation *operation, int32_t source, int32_t tag)
{
    const struct operation_key *key = &operation->key;
    struct message posted = message_of((enum spool_kind)key->kind, key->peer, key->tag, NO_SCOPE);
    posted.bytes = key->bytes;
    posted.related = operation->related;
    struct message came = posted;
    came.peer = source;
    came.tag = tag;
    struct operation *last = NULL;
    return operation_of(t, &last, (enum call)key->call, key->path, operation->comm, &posted, &came);
}

static struct outcome *define_outcome(struct thread *t, const struct outcome_key *key, uint64_t hash)
{
    struct outcome *outcome = arena_alloc(sizeof *outcome);
    if (!outcome)
        return NULL;
    *outcome = (struct outcome){hash, *key, __atomic_add_fetch(&outcome_count, 1, __ATOMIC_RELAXED)};
    struct spool_outcome head = {.id = outcome->id,
                                 .operation = key->operation,
                                 .source = key->source,
                                 .tag = key->tag,
                                 .bytes = key->bytes,
                                 .ended = key->ended,
                                 .receive_operation = key->receive_operation};
    return spool_define(&t->stream, SPOOL_OUTCOME, &head, sizeof head, NULL, 0, NULL, 0) ? outcome : NULL;
}

uint32_t outcome_intern_slow(struct thread *t, struct operation *own, const struct outcome_key *key)
{
    uint64_t hash = intern_hash(key, sizeof *key);
    void **slot = intern_find(&t->outcomes, hash, key, sizeof *key);
    if (!slot)
        return 0;
    if (!*slot && spool_definition_detail() != SPOOL_DEFINE_ALL) {
        sample_begin_to_leave_out();
        return 0;
    }
    if (!*slot) {
        *slot = define_outcome(t, key, hash);
        t->outcomes.count += *slot != NULL;
    }
    const struct outcome *outcome = *slot;
    if (own && outcome)
        own->last_outcome = *outcome;
    return outcome ? outcome->id : 0;
}
