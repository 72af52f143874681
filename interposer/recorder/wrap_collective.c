/* Blocking collectives. bytes: what this rank contributes; schema/README.md has the table. Compiled twice: see
 * large_count.h. */
#include "large_count.h"
#include "wrappers.h"

static inline struct message rooted(int root, MPI_Comm comm)
{
    return (struct message){SPOOL_COLLECTIVE, root == MPI_ROOT ? SPOOL_ROOT : peer_code(root), SPOOL_NO_TAG, comm, 0};
}

static inline struct message unrooted(MPI_Comm comm)
{
    return (struct message){SPOOL_COLLECTIVE, SPOOL_NO_PEER, SPOOL_NO_TAG, comm, 0};
}

/* Counts are only asked for once the call has succeeded: before that an argument may be invalid. */
static void done(struct span *span, struct message *message, int error, uint64_t bytes)
{
    message->bytes = bytes;
    record_call(span, error == MPI_SUCCESS ? &(struct exchange){*message, *message} : NULL, NULL);
}

static int ranks_of(struct span *span, MPI_Comm comm)
{
    return comm_other_size(comm_of(span->thread, comm));
}

/* Of the group whose members get the parts of MPI_Reduce_scatter: the local one. */
static int local_ranks(struct span *span, MPI_Comm comm)
{
    const struct comm *known = comm_of(span->thread, comm);
    return known ? known->size : 0;
}

static int own_rank(struct span *span, MPI_Comm comm)
{
    const struct comm *known = comm_of(span->thread, comm);
    return known ? known->rank : 0;
}

/* This rank is the root, or on the root's side of an inter-communicator. */
static int is_root(struct span *span, MPI_Comm comm, int root)
{
    const struct comm *known = comm_of(span->thread, comm);
    return root == MPI_ROOT || (known && !known->inter && known->rank == root);
}

/* In the group of an inter-communicator that takes no part but through its root. */
static int is_bystander(int root)
{
    return root == MPI_PROC_NULL;
}

static uint64_t sum(const COUNT counts[], int n)
{
    uint64_t total = 0;
    for (int i = 0; i < n; i++)
        total += counts[i] > 0 ? (uint64_t)counts[i] : 0;
    return total;
}

#ifndef LARGE_COUNT
int wrap_MPI_Barrier(MPI_Comm comm)
{
    struct thread *t = enter_unless_paused();
    if (!t)
        return REAL(MPI_Barrier)(comm);
    struct message message = unrooted(comm);
    struct span span;
    call_begin(&span, t, CALL_MPI_Barrier, CALLER(), &message);
    int error = REAL(MPI_Barrier)(comm);
    call_stamp(&span);
    done(&span, &message, error, 0);
    leave(t);
    return error;
}
#endif

int SIZED(wrap_MPI_Bcast)(void *buffer, COUNT count, MPI_Datatype type, int root, MPI_Comm comm)
{
    struct thread *t = enter_unless_paused();
    if (!t)
        return REAL(SIZED(MPI_Bcast))(buffer, count, type, root, comm);
    struct message message = rooted(root, comm);
    struct span span;
    call_begin(&span, t, SIZED(CALL_MPI_Bcast), CALLER(), &message);
    int error = REAL(SIZED(MPI_Bcast))(buffer, count, type, root, comm);
    call_stamp(&span);
    uint64_t bytes = 0;
    if (error == MPI_SUCCESS)
        bytes = is_bystander(root) ? 0 : bytes_of((uint64_t)count, type);
    done(&span, &message, error, bytes);
    leave(t);
    return error;
}

int SIZED(wrap_MPI_Gather)(const void *send_buffer, COUNT send_count, MPI_Datatype send_type, void *receive_buffer,
                    COUNT receive_count, MPI_Datatype receive_type, int root, MPI_Comm comm)
{
    struct thread *t = enter_unless_paused();
    if (!t)
        return REAL(SIZED(MPI_Gather))(send_buffer, send_count, send_type, receive_buffer, receive_count, receive_type,
                                root, comm);
    struct message message = rooted(root, comm);
    struct span span;
    call_begin(&span, t, SIZED(CALL_MPI_Gather), CALLER(), &message);
    int error = REAL(SIZED(MPI_Gather))(send_buffer, send_count, send_type, receive_buffer, receive_count, receive_type,
                                 root, comm);
    call_stamp(&span);
    uint64_t bytes = 0;
    if (error == MPI_SUCCESS)
        bytes = is_bystander(root)               ? 0
                : send_buffer == MPI_IN_PLACE ? bytes_of((uint64_t)receive_count, receive_type)
                : root == MPI_ROOT            ? 0
                                              : bytes_of((uint64_t)send_count, send_type);
    done(&span, &message, error, bytes);
    leave(t);
    return error;
}

int SIZED(wrap_MPI_Gatherv)(const void *send_buffer, COUNT send_count, MPI_Datatype send_type, void *receive_buffer,
                     const COUNT receive_counts[], const OFFSET offsets[], MPI_Datatype receive_type, int root,
                     MPI_Comm comm)
{
    struct thread *t = enter_unless_paused();
    if (!t)
        return REAL(SIZED(MPI_Gatherv))(send_buffer, send_count, send_type, receive_buffer, receive_counts, offsets,
                                 receive_type, root, comm);
    struct message message = rooted(root, comm);
    struct span span;
    call_begin(&span, t, SIZED(CALL_MPI_Gatherv), CALLER(), &message);
    int error = REAL(SIZED(MPI_Gatherv))(send_buffer, send_count, send_type, receive_buffer, receive_counts, offsets,
                                  receive_type, root, comm);
    call_stamp(&span);
    uint64_t bytes = 0;
    if (error == MPI_SUCCESS)
        bytes = is_bystander(root) || root == MPI_ROOT ? 0
                : send_buffer == MPI_IN_PLACE
                    ? bytes_of((uint64_t)receive_counts[own_rank(&span, comm)], receive_type)
                    : bytes_of((uint64_t)send_count, send_type);
    done(&span, &message, error, bytes);
    leave(t);
    return error;
}

int SIZED(wrap_MPI_Scatter)(const void *send_buffer, COUNT send_count, MPI_Datatype send_type, void *receive_buffer,
                     COUNT receive_count, MPI_Datatype receive_type, int root, MPI_Comm comm)
{
    struct thread *t = enter_unless_paused();
    if (!t)
        return REAL(SIZED(MPI_Scatter))(send_buffer, send_count, send_type, receive_buffer, receive_count, receive_type,
                                 root, comm);
    struct message message = rooted(root, comm);
    struct span span;
    call_begin(&span, t, SIZED(CALL_MPI_Scatter), CALLER(), &message);
    int error = REAL(SIZED(MPI_Scatter))(send_buffer, send_count, send_type, receive_buffer, receive_count,
                                         receive_type,
                                  root, comm);
    call_stamp(&span);
    uint64_t bytes = 0;
    if (error == MPI_SUCCESS)
        bytes = is_bystander(root) ? 0
                : is_root(&span, comm, root)
                    ? bytes_of((uint64_t)send_count, send_type) * (uint64_t)ranks_of(&span, comm)
                    : bytes_of((uint64_t)receive_count, receive_type);
    done(&span, &message, error, bytes);
    leave(t);
    return error;
}

int SIZED(wrap_MPI_Scatterv)(const void *send_buffer, const COUNT send_counts[], const OFFSET offsets[],
                             MPI_Datatype send_type,
                      void *receive_buffer, COUNT receive_count, MPI_Datatype receive_type, int root, MPI_Comm comm)
{
    struct thread *t = enter_unless_paused();
    if (!t)
        return REAL(SIZED(MPI_Scatterv))(send_buffer, send_counts, offsets, send_type, receive_buffer, receive_count,
                                  receive_type, root, comm);
    struct message message = rooted(root, comm);
    struct span span;
    call_begin(&span, t, SIZED(CALL_MPI_Scatterv), CALLER(), &message);
    int error = REAL(SIZED(MPI_Scatterv))(send_buffer, send_counts, offsets, send_type, receive_buffer, receive_count,
                                   receive_type, root, comm);
    call_stamp(&span);
    uint64_t bytes = 0;
    if (error == MPI_SUCCESS)
        bytes = is_bystander(root) ? 0
                : is_root(&span, comm, root)
                    ? bytes_of(sum(send_counts, ranks_of(&span, comm)), send_type)
                    : bytes_of((uint64_t)receive_count, receive_type);
    done(&span, &message, error, bytes);
    leave(t);
    return error;
}

int SIZED(wrap_MPI_Allgather)(const void *send_buffer, COUNT send_count, MPI_Datatype send_type, void *receive_buffer,
                       COUNT receive_count, MPI_Datatype receive_type, MPI_Comm comm)
{
    struct thread *t = enter_unless_paused();
    if (!t)
        return REAL(SIZED(MPI_Allgather))(send_buffer, send_count, send_type, receive_buffer, receive_count,
                                          receive_type,
                                   comm);
    struct message message = unrooted(comm);
    struct span span;
    call_begin(&span, t, SIZED(CALL_MPI_Allgather), CALLER(), &message);
    int error = REAL(SIZED(MPI_Allgather))(send_buffer, send_count, send_type, receive_buffer, receive_count,
                                           receive_type,
                                    comm);
    call_stamp(&span);
    uint64_t bytes = 0;
    if (error == MPI_SUCCESS)
        bytes = send_buffer == MPI_IN_PLACE ? bytes_of((uint64_t)receive_count, receive_type)
                                            : bytes_of((uint64_t)send_count, send_type);
    done(&span, &message, error, bytes);
    leave(t);
    return error;
}

int SIZED(wrap_MPI_Allgatherv)(const void *send_buffer, COUNT send_count, MPI_Datatype send_type, void *receive_buffer,
                        const COUNT receive_counts[], const OFFSET offsets[], MPI_Datatype receive_type, MPI_Comm comm)
{
    struct thread *t = enter_unless_paused();
    if (!t)
        return REAL(SIZED(MPI_Allgatherv))(send_buffer, send_count, send_type, receive_buffer, receive_counts, offsets,
                                    receive_type, comm);
    struct message message = unrooted(comm);
    struct span span;
    call_begin(&span, t, SIZED(CALL_MPI_Allgatherv), CALLER(), &message);
    int error = REAL(SIZED(MPI_Allgatherv))(send_buffer, send_count, send_type, receive_buffer, receive_counts, offsets,
                                     receive_type, comm);
    call_stamp(&span);
    uint64_t bytes = 0;
    if (error == MPI_SUCCESS)
        bytes = send_buffer == MPI_IN_PLACE
                    ? bytes_of((uint64_t)receive_counts[own_rank(&span, comm)], receive_type)
                    : bytes_of((uint64_t)send_count, send_type);
    done(&span, &message, error, bytes);
    leave(t);
    return error;
}

int SIZED(wrap_MPI_Alltoall)(const void *send_buffer, COUNT send_count, MPI_Datatype send_type, void *receive_buffer,
                      COUNT receive_count, MPI_Datatype receive_type, MPI_Comm comm)
{
    struct thread *t = enter_unless_paused();
    if (!t)
        return REAL(SIZED(MPI_Alltoall))(send_buffer, send_count, send_type, receive_buffer, receive_count,
                                         receive_type,
                                  comm);
    struct message message = unrooted(comm);
    struct span span;
    call_begin(&span, t, SIZED(CALL_MPI_Alltoall), CALLER(), &message);
    int error = REAL(SIZED(MPI_Alltoall))(send_buffer, send_count, send_type, receive_buffer, receive_count,
                                          receive_type,
                                   comm);
    call_stamp(&span);
    uint64_t bytes = 0;
    if (error == MPI_SUCCESS)
        bytes = (send_buffer == MPI_IN_PLACE ? bytes_of((uint64_t)receive_count, receive_type)
                                             : bytes_of((uint64_t)send_count, send_type)) *
                (uint64_t)ranks_of(&span, comm);
    done(&span, &message, error, bytes);
    leave(t);
    return error;
}

int SIZED(wrap_MPI_Alltoallv)(const void *send_buffer, const COUNT send_counts[], const OFFSET send_offsets[],
                       MPI_Datatype send_type, void *receive_buffer, const COUNT receive_counts[],
                       const OFFSET receive_offsets[], MPI_Datatype receive_type, MPI_Comm comm)
{
    struct thread *t = enter_unless_paused();
    if (!t)
        return REAL(SIZED(MPI_Alltoallv))(send_buffer, send_counts, send_offsets, send_type, receive_buffer,
                                          receive_counts,
                                   receive_offsets, receive_type, comm);
    struct message message = unrooted(comm);
    struct span span;
    call_begin(&span, t, SIZED(CALL_MPI_Alltoallv), CALLER(), &message);
    int error = REAL(SIZED(MPI_Alltoallv))(send_buffer, send_counts, send_offsets, send_type, receive_buffer,
                                    receive_counts, receive_offsets, receive_type, comm);
    call_stamp(&span);
    uint64_t bytes = 0;
    if (error == MPI_SUCCESS)
        bytes = send_buffer == MPI_IN_PLACE ? bytes_of(sum(receive_counts, ranks_of(&span, comm)), receive_type)
                                            : bytes_of(sum(send_counts, ranks_of(&span, comm)), send_type);
    done(&span, &message, error, bytes);
    leave(t);
    return error;
}

static uint64_t sum_typed(const COUNT counts[], const MPI_Datatype types[], int n)
{
    uint64_t total = 0;
    for (int i = 0; i < n; i++)
        total += bytes_of((uint64_t)counts[i], types[i]);
    return total;
}

int SIZED(wrap_MPI_Alltoallw)(const void *send_buffer, const COUNT send_counts[], const OFFSET send_offsets[],
                       const MPI_Datatype send_types[], void *receive_buffer, const COUNT receive_counts[],
                       const OFFSET receive_offsets[], const MPI_Datatype receive_types[], MPI_Comm comm)
{
    struct thread *t = enter_unless_paused();
    if (!t)
        return REAL(SIZED(MPI_Alltoallw))(send_buffer, send_counts, send_offsets, send_types, receive_buffer,
                                   receive_counts, receive_offsets, receive_types, comm);
    struct message message = unrooted(comm);
    struct span span;
    call_begin(&span, t, SIZED(CALL_MPI_Alltoallw), CALLER(), &message);
    int error = REAL(SIZED(MPI_Alltoallw))(send_buffer, send_counts, send_offsets, send_types, receive_buffer,
                                    receive_counts, receive_offsets, receive_types, comm);
    call_stamp(&span);
    uint64_t bytes = 0;
    if (error == MPI_SUCCESS)
        bytes = send_buffer == MPI_IN_PLACE ? sum_typed(receive_counts, receive_types, ranks_of(&span, comm))
                                            : sum_typed(send_counts, send_types, ranks_of(&span, comm));
    done(&span, &message, error, bytes);
    leave(t);
    return error;
}

int SIZED(wrap_MPI_Reduce)(const void *send_buffer, void *receive_buffer, COUNT count, MPI_Datatype type, MPI_Op op,
                           int root,
                    MPI_Comm comm)
{
    struct thread *t = enter_unless_paused();
    if (!t)
        return REAL(SIZED(MPI_Reduce))(send_buffer, receive_buffer, count, type, op, root, comm);
    struct message message = rooted(root, comm);
    struct span span;
    call_begin(&span, t, SIZED(CALL_MPI_Reduce), CALLER(), &message);
    int error = REAL(SIZED(MPI_Reduce))(send_buffer, receive_buffer, count, type, op, root, comm);
    call_stamp(&span);
    uint64_t bytes = 0;
    if (error == MPI_SUCCESS)
        bytes = is_bystander(root) || root == MPI_ROOT ? 0 : bytes_of((uint64_t)count, type);
    done(&span, &message, error, bytes);
    leave(t);
    return error;
}

int SIZED(wrap_MPI_Allreduce)(const void *send_buffer, void *receive_buffer, COUNT count, MPI_Datatype type, MPI_Op op,
                       MPI_Comm comm)
{
    struct thread *t = enter_unless_paused();
    if (!t)
        return REAL(SIZED(MPI_Allreduce))(send_buffer, receive_buffer, count, type, op, comm);
    struct message message = unrooted(comm);
    struct span span;
    call_begin(&span, t, SIZED(CALL_MPI_Allreduce), CALLER(), &message);
    int error = REAL(SIZED(MPI_Allreduce))(send_buffer, receive_buffer, count, type, op, comm);
    call_stamp(&span);
    uint64_t bytes = 0;
    if (error == MPI_SUCCESS)
        bytes = bytes_of((uint64_t)count, type);
    done(&span, &message, error, bytes);
    leave(t);
    return error;
}

int SIZED(wrap_MPI_Reduce_scatter)(const void *send_buffer, void *receive_buffer, const COUNT receive_counts[],
                            MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    struct thread *t = enter_unless_paused();
    if (!t)
        return REAL(SIZED(MPI_Reduce_scatter))(send_buffer, receive_buffer, receive_counts, type, op, comm);
    struct message message = unrooted(comm);
    struct span span;
    call_begin(&span, t, SIZED(CALL_MPI_Reduce_scatter), CALLER(), &message);
    int error = REAL(SIZED(MPI_Reduce_scatter))(send_buffer, receive_buffer, receive_counts, type, op, comm);
    call_stamp(&span);
    uint64_t bytes = 0;
    if (error == MPI_SUCCESS)
        bytes = bytes_of(sum(receive_counts, local_ranks(&span, comm)), type);
    done(&span, &message, error, bytes);
    leave(t);
    return error;
}

int SIZED(wrap_MPI_Reduce_scatter_block)(const void *send_buffer, void *receive_buffer, COUNT receive_count,
                                  MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    struct thread *t = enter_unless_paused();
    if (!t)
        return REAL(SIZED(MPI_Reduce_scatter_block))(send_buffer, receive_buffer, receive_count, type, op, comm);
    struct message message = unrooted(comm);
    struct span span;
    call_begin(&span, t, SIZED(CALL_MPI_Reduce_scatter_block), CALLER(), &message);
    int error = REAL(SIZED(MPI_Reduce_scatter_block))(send_buffer, receive_buffer, receive_count, type, op, comm);
    call_stamp(&span);
    uint64_t bytes = 0;
    if (error == MPI_SUCCESS)
        bytes = bytes_of((uint64_t)receive_count, type) * (uint64_t)local_ranks(&span, comm);
    done(&span, &message, error, bytes);
    leave(t);
    return error;
}

int SIZED(wrap_MPI_Scan)(const void *send_buffer, void *receive_buffer, COUNT count, MPI_Datatype type, MPI_Op op,
                  MPI_Comm comm)
{
    struct thread *t = enter_unless_paused();
    if (!t)
        return REAL(SIZED(MPI_Scan))(send_buffer, receive_buffer, count, type, op, comm);
    struct message message = unrooted(comm);
    struct span span;
    call_begin(&span, t, SIZED(CALL_MPI_Scan), CALLER(), &message);
    int error = REAL(SIZED(MPI_Scan))(send_buffer, receive_buffer, count, type, op, comm);
    call_stamp(&span);
    uint64_t bytes = 0;
    if (error == MPI_SUCCESS)
        bytes = bytes_of((uint64_t)count, type);
    done(&span, &message, error, bytes);
    leave(t);
    return error;
}

int SIZED(wrap_MPI_Exscan)(const void *send_buffer, void *receive_buffer, COUNT count, MPI_Datatype type, MPI_Op op,
                    MPI_Comm comm)
{
    struct thread *t = enter_unless_paused();
    if (!t)
        return REAL(SIZED(MPI_Exscan))(send_buffer, receive_buffer, count, type, op, comm);
    struct message message = unrooted(comm);
    struct span span;
    call_begin(&span, t, SIZED(CALL_MPI_Exscan), CALLER(), &message);
    int error = REAL(SIZED(MPI_Exscan))(send_buffer, receive_buffer, count, type, op, comm);
    call_stamp(&span);
    uint64_t bytes = 0;
    if (error == MPI_SUCCESS)
        bytes = bytes_of((uint64_t)count, type);
    done(&span, &message, error, bytes);
    leave(t);
    return error;
}
