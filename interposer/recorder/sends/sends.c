#include "sends.h"

#include "../base/accelerator.h"
#include "../base/clock.h"
#include "../base/config.h"
#include "../base/log.h"
#include "../base/slots.h"
#include "../record/thread.h"

#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

/* Copies asked after at a time, at each send: what was sent without a thought to them is over long since, so two a send keep up. */
enum { ASKED_A_TIME = 2 };

/* Copies have the gaps of what they are of, and are at most so many times as long as what is sent. */
enum { MOST_SPREAD = 8 };

/* For a communicator to end while another thread asks; it may never come back, if its error handler left by longjmp. */
#define PATIENCE_NS 10000000000u

static struct {
    uint64_t most_bytes;
    const char *stopped;       /* why nothing more is copied; NULL: it is */
    int over;                  /* MPI ends: what its callbacks send would never be waited for */
    int tag_ub;                /* 0: not asked yet */
    struct slots slots;
    /* counts; atomic */
    uint64_t copied, bytes, at_once, no_memory, datatype, device, at_end, failed;
} sends;

static void add(uint64_t *count, uint64_t more)
{
    __atomic_fetch_add(count, more, __ATOMIC_RELAXED);
}

int sends_wanted(void)
{
    sends.most_bytes = (uint64_t)config.buffer_sends;
    copies_limit((uint64_t)config.buffer_sends_mb << 20);
    return sends.most_bytes > 0;
}

void sends_stop(const char *why)
{
    __atomic_store_n(&sends.stopped, why, __ATOMIC_RELEASE);
}

/* --- what is under way -------------------------------------------------------------------------------------------- */

static void note_failure(void)
{
    if (__atomic_fetch_add(&sends.failed, 1, __ATOMIC_RELAXED) == 0)
        log_line("MPI could not complete a send whose data LAPSCOPE_BUFFER_SENDS had copied; the program took it for sent");
}

static int is_over(struct copy *copy)
{
    MPI_Request request = request_of_key(copy->request);
    int over = 0;
    if (mpi.Test(&request, &over, MPI_STATUS_IGNORE) != MPI_SUCCESS) {
        note_failure();
        return 1;
    }
    return over;
}

static int wait_for(struct copy *copy)
{
    MPI_Request request = request_of_key(copy->request);
    if (mpi.Wait(&request, MPI_STATUS_IGNORE) != MPI_SUCCESS)
        note_failure();
    return 1;
}

int sends_under_way(void)
{
    copies_reap(ASKED_A_TIME, 0, is_over);
    return copies_under_way() > 0;
}

void sends_comm_freed(MPI_Comm comm)
{
    copies_forget_comm(comm_key(comm));
}

void sends_comm_ends(MPI_Comm comm)
{
    uint64_t began = clock_nanoseconds(CLOCK_MONOTONIC);
    while (copies_reap(UINT_MAX, comm_key(comm), wait_for) && clock_nanoseconds(CLOCK_MONOTONIC) - began < PATIENCE_NS)
        sched_yield();
}

void sends_end(void)
{
    __atomic_store_n(&sends.over, 1, __ATOMIC_RELEASE);
    add(&sends.at_end, copies_under_way());
    copies_reap(UINT_MAX, 0, wait_for);
    copies_end();
}

/* --- a send ------------------------------------------------------------------------------------------------------- */

/* Tags have a limit that MPI keeps as an attribute of MPI_COMM_WORLD. */
static int is_tag(int tag)
{
    enum { LEAST_LIMIT = 32767 };
    if (tag >= 0 && tag <= LEAST_LIMIT)
        return 1;
    if (!sends.tag_ub) {
        int *limit, found;
        int known = mpi.Comm_get_attr(mpi.comm_world, MPI_TAG_UB, (void *)&limit, &found) == MPI_SUCCESS && found;
        sends.tag_ub = known ? *limit : LEAST_LIMIT;
    }
    return tag >= 0 && tag <= sends.tag_ub;
}

static struct copy *take(uint64_t bytes)
{
    copies_reap(ASKED_A_TIME, 0, is_over);
    struct copy *copy = copy_take(bytes);
    if (!copy) { /* the others, too, before it is given up */
        copies_reap(UINT_MAX, 0, is_over);
        copy = copy_take(bytes);
    }
    if (!copy)
        add(&sends.no_memory, 1);
    return copy;
}

/* Where what is sent lies in memory, from where its datatype counts. */
struct spread {
    int64_t begin;
    uint64_t bytes;
    int has_gaps;
};

static int spread_of(const struct asked_send *send, uint64_t size, struct spread *spread)
{
    MPI_Count lower, extent, begin, one;
    if (mpi.Type_get_extent_x(send->type, &lower, &extent) != MPI_SUCCESS ||
        mpi.Type_get_true_extent_x(send->type, &begin, &one) != MPI_SUCCESS)
        return 0;
    __int128 last = (__int128)extent * (send->count - 1), bytes = (last < 0 ? -last : last) + one;
    if (bytes > (__int128)send->count * (MPI_Count)size * MOST_SPREAD)
        return 0;
    *spread = (struct spread){.begin = begin + (int64_t)(last < 0 ? last : 0),
                              .bytes = (uint64_t)bytes,
                              .has_gaps = one != (MPI_Count)size || (extent != (MPI_Count)size && send->count > 1)};
    return 1;
}

/* What a derived datatype was made of. */
struct contents {
    int integers, addresses, types, combiner;
};

static int contents_of(MPI_Datatype type, struct contents *of)
{
    MPI_Count integers, addresses, large, types;
    if (mpi.Type_get_envelope_c) /* the other is an error where counts are large */
        if (mpi.Type_get_envelope_c(type, &integers, &addresses, &large, &types, &of->combiner) != MPI_SUCCESS || large)
            return 0;
    return mpi.Type_get_envelope(type, &of->integers, &of->addresses, &of->types, &of->combiner) == MPI_SUCCESS;
}

static int is_known(MPI_Datatype type, const struct contents *of, int depth);

/* Whether all that it was made of is. */
static int parts_are_known(MPI_Datatype type, const struct contents *of, int depth)
{
    size_t bytes = (size_t)of->addresses * sizeof(MPI_Aint) + (size_t)of->types * sizeof(MPI_Datatype) +
                   (size_t)of->integers * sizeof(int);
    MPI_Aint *addresses = malloc(bytes + 1);
    if (!addresses)
        return 0;
    MPI_Datatype *types = (MPI_Datatype *)(addresses + of->addresses);
    int good = mpi.Type_get_contents(type, of->integers, of->addresses, of->types, (int *)(types + of->types), addresses, types) ==
               MPI_SUCCESS;
    for (int i = 0, count = good ? of->types : 0; i < count; i++) {
        struct contents part;
        int has_contents = contents_of(types[i], &part);
        good = good && has_contents && is_known(types[i], &part, depth + 1);
        if (has_contents && part.types) /* others are MPI's */
            mpi.Type_free(&types[i]);
    }
    free(addresses);
    return good;
}

/* Whether MPIs pack and unpack the datatype rightly, as far as is known: pairs with gaps of their own, as MPI_DOUBLE_INT, they do not
 * in every order (MPICH 4.0 writes past them). */
static int is_known(MPI_Datatype type, const struct contents *of, int depth)
{
    enum { DEEPEST = 32 };
    MPI_Count lower, extent, size;
    if (of->combiner != MPI_COMBINER_NAMED)
        return depth < DEEPEST && parts_are_known(type, of, depth);
    return mpi.Type_get_extent_x(type, &lower, &extent) == MPI_SUCCESS && mpi.Type_size_x(type, &size) == MPI_SUCCESS && extent == size;
}

/* Only MPI can read any datatype: it packs the elements, and unpacks them where they lie in the copy. */
static int copy_elements(const struct asked_send *send, uint64_t bytes, void *to)
{
    int room = 0, packed_bytes = 0, position = 0;
    if (mpi.Pack_size((int)send->count, send->type, send->comm, &room) != MPI_SUCCESS || room < 0)
        return 0;
    struct copy *packed = take((uint64_t)room);
    if (!packed)
        return 0;
    int done = mpi.Pack(send->buffer, (int)send->count, send->type, packed->data, room, &packed_bytes, send->comm) == MPI_SUCCESS &&
               (uint64_t)packed_bytes == bytes &&
               mpi.Unpack(packed->data, packed_bytes, &position, to, (int)send->count, send->type, send->comm) == MPI_SUCCESS;
    copy_release(packed);
    add(&sends.datatype, !done);
    return done;
}

struct copy *sends_copy(const struct asked_send *send)
{
    if (__atomic_load_n(&sends.stopped, __ATOMIC_ACQUIRE) || __atomic_load_n(&sends.over, __ATOMIC_ACQUIRE) || send->dest < 0 || send->count <= 0 || send->count > INT_MAX ||
        send->type == mpi.datatype_null || send->comm == mpi.comm_null || !is_tag(send->tag))
        return NULL;
    uint64_t size = bytes_of(1, send->type), bytes = (uint64_t)send->count * size;
    if (!size || size > sends.most_bytes || bytes > sends.most_bytes || !slots_are_on(&sends.slots))
        return NULL;
    struct spread spread;
    struct contents of;
    if (!send->buffer || !spread_of(send, size, &spread) ||
        (spread.has_gaps && !(contents_of(send->type, &of) && is_known(send->type, &of, 0)))) {
        add(&sends.datatype, 1);
        return NULL;
    }
    if (accelerator_holds((const char *)send->buffer + spread.begin, spread.bytes)) {
        add(&sends.device, 1);
        return NULL;
    }
    struct copy *copy = take(spread.bytes);
    if (!copy)
        return NULL;
    copy->bytes = bytes;
    copy->begin = spread.begin;
    if (!spread.has_gaps) {
        memcpy(copy->data, (const char *)send->buffer + spread.begin, bytes);
    } else if (!copy_elements(send, bytes, (char *)copy->data - spread.begin)) {
        copy_release(copy);
        return NULL;
    }
    return copy;
}

static int has_rank(MPI_Comm comm, int rank)
{
    int inter = 0, size = 0;
    return mpi.Comm_test_inter(comm, &inter) == MPI_SUCCESS &&
           (inter ? mpi.Comm_remote_size(comm, &size) : mpi.Comm_size(comm, &size)) == MPI_SUCCESS && rank < size;
}

enum sent sends_send(struct copy *copy, const struct asked_send *send, int *error)
{
    if (*error != MPI_SUCCESS) {
        copy_release(copy);
        return SENT_FAILED;
    }
    if (!has_rank(send->comm, send->dest)) {
        copy_release(copy);
        return SENT_NOT;
    }
    MPI_Request request;
    int over = 0;
    /* described to MPI as the application has done it: MPICH 4.0 over UCX takes MPI_PACKED for too long where it is received with gaps */
    *error = mpi.Isend((char *)copy->data - copy->begin, (int)send->count, send->type, send->dest, send->tag, send->comm, &request);
    if (*error != MPI_SUCCESS) {
        copy_release(copy);
        return SENT_FAILED;
    }
    add(&sends.copied, 1);
    add(&sends.bytes, copy->bytes);
    if (mpi.Test(&request, &over, MPI_STATUS_IGNORE) != MPI_SUCCESS)
        note_failure();
    else if (!over) {
        copy_sent(copy, request_key(request), comm_key(send->comm));
        return SENT;
    }
    add(&sends.at_once, 1);
    copy_release(copy);
    return SENT;
}

/* --- the record --------------------------------------------------------------------------------------------------- */

void sends_start_record(struct thread *t, uint64_t seed)
{
    if (!sends.most_bytes)
        return;
    sends.slots = slots_of(seed);
    sends_record(t);
}

/* As schema/spool.h has it. */
void sends_record(struct thread *t)
{
    char text[512], slot[24] = "";
    if (!sends.most_bytes)
        return;
    if (sends.slots.length_ns)
        snprintf(slot, sizeof slot, "%llu", (unsigned long long)sends.slots.length_ns);
    snprintf(text, sizeof text, "%s\t%s\t%llu\t%llu\t%llu\t%llu\t%llu\t%llu\t%llu\t%llu\t%llu", sends.stopped ? sends.stopped : "", slot,
             (unsigned long long)sends.most_bytes, (unsigned long long)sends.copied, (unsigned long long)sends.bytes,
             (unsigned long long)sends.at_once,
             (unsigned long long)sends.no_memory, (unsigned long long)sends.datatype,
             (unsigned long long)copies_most_bytes(), (unsigned long long)sends.at_end, (unsigned long long)sends.failed);
    spool_define_meta(&t->stream, "copied_sends", text);
    if (!sends.device)
        return;
    snprintf(text, sizeof text, "%llu\trecorded", (unsigned long long)sends.device);
    spool_define_meta(&t->stream, "option.device_sends", text);
}
