#include "record_completion.h"

#include "comm.h"
#include "meter.h"
#include "tally.h"

/* The operation of what the receiving half of a request got, as far as it is known; 0 when it could not be kept. */
static uint32_t received_operation(struct thread *t, const struct operation *posted, const MPI_Status *status)
{
    const struct operation_key *key = &posted->key;
    if (!isendrecv_has_status() && key->peer != SPOOL_PROC_NULL)
        return posted->id;
    struct message receive = message_of(SPOOL_RECV, key->peer, key->tag, NO_SCOPE);
    receive.bytes = key->bytes;
    struct message came = message_received(&receive, status);
    struct operation *last = NULL;
    struct operation *operation = operation_of(t, &last, key->call, key->path, posted->comm, &receive, &came);
    return operation ? operation->id : 0;
}

/* What a status tells of a receive. */
static void fill_received(struct outcome_key *key, const struct operation *operation, const MPI_Status *status)
{
    if (UNLIKELY(operation->key.peer == SPOOL_PROC_NULL)) { /* see message_received */
        key->tag = SPOOL_ANY_TAG;
        key->bytes = 0;
        return;
    }
    key->source = peer_code(status->MPI_SOURCE);
    key->tag = tag_code(status->MPI_TAG);
    key->bytes = bytes_received(status);
    if (UNLIKELY(key->bytes > operation->key.bytes)) /* truncated: Open MPI tells the size that was sent */
        key->bytes = operation->key.bytes;
}

static uint32_t outcome_of_request(struct thread *t, const struct spool_live *live, struct operation *operation,
                                          const MPI_Status *status, enum spool_ended ended, uint64_t *bytes)
{
    struct operation *own = live->thread == t->number ? operation : NULL;
    struct outcome_key key = {.bytes = operation->key.bytes,
                              .operation = operation->id,
                              .source = operation->key.peer,
                              .tag = operation->key.tag};
    int cancelled = 0;
    /* another thread's MPI_Cancel may have come while this one was waiting */
    if (UNLIKELY((live->flags & SPOOL_LIVE_CANCELLED || recorder_multiple) && status))
        mpi.Test_cancelled(status, &cancelled);
    if (UNLIKELY(cancelled)) {
        key.bytes = 0;
        ended = SPOOL_CANCELLED;
    } else if (status && ended != SPOOL_FREED) {
        if (operation->key.kind == SPOOL_RECV)
            fill_received(&key, operation, status);
        else if (UNLIKELY(operation->key.kind == SPOOL_IO))
            key.bytes = bytes_received(status);
        else if (UNLIKELY(operation->related && operation->related->key.kind == SPOOL_RECV &&
                          operation->key.kind == SPOOL_SEND))
            key.receive_operation = received_operation(t, operation->related, status);
    }
    key.ended = (uint8_t)ended;
    *bytes = key.bytes;
    return outcome_of(t, own, &key);
}

static uint64_t since(uint64_t moment, uint64_t begin)
{
    return moment ? moment - begin + 1 : 0;
}

/* The records that may stand in front of a REQUEST; returns where to go on. */
static unsigned char *put_extras(struct thread *t, unsigned char *at, const struct spool_live *live)
{
    if (UNLIKELY(live->thread != t->number || live->injection_arm)) {
        uint64_t foreign[] = {live->thread, live->injection_arm};
        at = spool_put(at, SPOOL_FOREIGN, foreign, 2);
    }
    if (UNLIKELY(t->meter != NULL) && live->thread == t->number)
        at = meter_put_request(t->meter, live, at);
    int seen_complete = live->flags & SPOOL_LIVE_SEEN_COMPLETE;
    if (live->unsuccessful_tests || seen_complete) {
        uint64_t begin = live->post_begin, seen = seen_complete ? since(live->seen_complete, begin) : 0;
        uint64_t none[SPOOL_HOT_FIELDS] = {0, 0, 0, 0, seen};
        uint64_t extra[SPOOL_HOT_FIELDS] = {live->unsuccessful_tests, since(live->first_unsuccessful_test, begin),
                                            since(live->last_unsuccessful_test, begin),
                                            since(live->last_incomplete, begin), seen};
        at = spool_put(at, SPOOL_EXTRA, live->unsuccessful_tests ? extra : none, SPOOL_HOT_FIELDS);
    }
    return at;
}

static void summarize_request(const struct span *span, const struct spool_live *live, const struct operation *operation,
                              uint64_t bytes, uint64_t mpi_ticks)
{
    struct spool_tally *tally = tally_find(span->thread, operation->key.call, operation->key.path, bytes, SPOOL_TALLY_SUMMARY);
    if (!tally) {
        record_lost();
        return;
    }
    tally->count++;
    tally->bytes += bytes;
    tally->inside_ticks += live->post_ticks;
    tally->completion_ticks += (span->end - span->begin) / span->completed;
    tally->mpi_ticks += mpi_ticks;
    tally->window_ticks += span->begin - live->post_begin - live->post_ticks;
}

void record_unknown_completion(void)
{
    if (recorder_state == RECORDER_PAUSED)
        return; /* it was left out on purpose */
    __atomic_fetch_add(&spool_header()->unknown_requests, 1, __ATOMIC_RELAXED);
}

/* MPI_Comm_idup is done: now the new communicator may be asked for its members. */
static __attribute__((noinline, cold)) void define_made_comm(struct thread *t, const struct spool_live *live,
                                                            const struct operation *operation)
{
    const void *handle = (const void *)(uintptr_t)live->definition;
    MPI_Comm made = live->flags & SPOOL_LIVE_FORTRAN ? comm_f2c(*(const MPI_Fint *)handle) : *(const MPI_Comm *)handle;
    comm_define(t, SCOPE(made), call_names[operation->key.call], operation->comm, 0);
}

static __attribute__((noinline)) void complete_slowly(struct thread *t, struct spool_live *live,
                                                      const struct operation *operation)
{
    if (live->flags & (SPOOL_LIVE_INJECTED | SPOOL_LIVE_REDUCES))
        thread_hooks.ended(live);
    if (live->flags & SPOOL_LIVE_MAKES_COMM)
        define_made_comm(t, live, operation);
}

void record_completion_slowly(const struct span *span, struct spool_live *live, const MPI_Status *status,
                              enum spool_ended ended)
{
    struct thread *t = span->thread;
    struct operation *operation = (struct operation *)(uintptr_t)live->owner;
    uint64_t bytes;
    uint32_t outcome = outcome_of_request(t, live, operation, status, ended, &bytes);
    if (live->peer_slot != UINT32_MAX)
        add_outstanding((int32_t)live->peer_slot, -(int64_t)operation->key.bytes);
    if (UNLIKELY(t->stream.full || !outcome || !spool_stream_room(&t->stream, t->record_room, 0)))
        summarize_request(span, live, operation, bytes, inside_while_live(span, live));
    else
        put_completion(span, live, outcome, put_extras(t, t->stream.at, live));
    if (UNLIKELY(live->flags & (SPOOL_LIVE_MAKES_COMM | SPOOL_LIVE_INJECTED | SPOOL_LIVE_REDUCES)))
        complete_slowly(t, live, operation);
    if (UNLIKELY(t->reach != NULL))
        reach_hooks.ended(t->reach, span, live, ended, bytes);
}
