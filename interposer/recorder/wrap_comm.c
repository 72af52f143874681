/* Calls that make or free communicators: a call row, and the table of communicators kept up to date. */
#include "wrappers.h"

static inline struct message parent(MPI_Comm comm)
{
    return (struct message){SPOOL_OTHER, SPOOL_NO_PEER, SPOOL_NO_TAG, comm, 0};
}

/* `made` is the new communicator; MPI_COMM_NULL where this rank is not in it. */
static void made(struct span *span, const struct message *message, int error, const MPI_Comm *comm)
{
    record_call(span, error == MPI_SUCCESS ? &(struct exchange){*message, *message} : NULL, NULL);
    if (error == MPI_SUCCESS)
        comm_define(span->thread, *comm, call_names[span->call]);
}

int wrap_MPI_Comm_dup(MPI_Comm comm, MPI_Comm *new_comm)
{
    struct thread *t = enter();
    if (!t)
        return REAL(MPI_Comm_dup)(comm, new_comm);
    struct message message = parent(comm);
    struct span span;
    call_begin(&span, t, CALL_MPI_Comm_dup, CALLER(), &message);
    int error = REAL(MPI_Comm_dup)(comm, new_comm);
    call_stamp(&span);
    made(&span, &message, error, new_comm);
    leave(t);
    return error;
}

int wrap_MPI_Comm_dup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm *new_comm)
{
    struct thread *t = enter();
    if (!t)
        return REAL(MPI_Comm_dup_with_info)(comm, info, new_comm);
    struct message message = parent(comm);
    struct span span;
    call_begin(&span, t, CALL_MPI_Comm_dup_with_info, CALLER(), &message);
    int error = REAL(MPI_Comm_dup_with_info)(comm, info, new_comm);
    call_stamp(&span);
    made(&span, &message, error, new_comm);
    leave(t);
    return error;
}

int wrap_MPI_Comm_create(MPI_Comm comm, MPI_Group group, MPI_Comm *new_comm)
{
    struct thread *t = enter();
    if (!t)
        return REAL(MPI_Comm_create)(comm, group, new_comm);
    struct message message = parent(comm);
    struct span span;
    call_begin(&span, t, CALL_MPI_Comm_create, CALLER(), &message);
    int error = REAL(MPI_Comm_create)(comm, group, new_comm);
    call_stamp(&span);
    made(&span, &message, error, new_comm);
    leave(t);
    return error;
}

int wrap_MPI_Comm_create_group(MPI_Comm comm, MPI_Group group, int tag, MPI_Comm *new_comm)
{
    struct thread *t = enter();
    if (!t)
        return REAL(MPI_Comm_create_group)(comm, group, tag, new_comm);
    struct message message = parent(comm);
    struct span span;
    call_begin(&span, t, CALL_MPI_Comm_create_group, CALLER(), &message);
    int error = REAL(MPI_Comm_create_group)(comm, group, tag, new_comm);
    call_stamp(&span);
    made(&span, &message, error, new_comm);
    leave(t);
    return error;
}

int wrap_MPI_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm *new_comm)
{
    struct thread *t = enter();
    if (!t)
        return REAL(MPI_Comm_split)(comm, color, key, new_comm);
    struct message message = parent(comm);
    struct span span;
    call_begin(&span, t, CALL_MPI_Comm_split, CALLER(), &message);
    int error = REAL(MPI_Comm_split)(comm, color, key, new_comm);
    call_stamp(&span);
    made(&span, &message, error, new_comm);
    leave(t);
    return error;
}

int wrap_MPI_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *new_comm)
{
    struct thread *t = enter();
    if (!t)
        return REAL(MPI_Comm_split_type)(comm, type, key, info, new_comm);
    struct message message = parent(comm);
    struct span span;
    call_begin(&span, t, CALL_MPI_Comm_split_type, CALLER(), &message);
    int error = REAL(MPI_Comm_split_type)(comm, type, key, info, new_comm);
    call_stamp(&span);
    made(&span, &message, error, new_comm);
    leave(t);
    return error;
}

int wrap_MPI_Cart_create(MPI_Comm comm, int dimensions, const int sizes[], const int periods[], int reorder,
                         MPI_Comm *new_comm)
{
    struct thread *t = enter();
    if (!t)
        return REAL(MPI_Cart_create)(comm, dimensions, sizes, periods, reorder, new_comm);
    struct message message = parent(comm);
    struct span span;
    call_begin(&span, t, CALL_MPI_Cart_create, CALLER(), &message);
    int error = REAL(MPI_Cart_create)(comm, dimensions, sizes, periods, reorder, new_comm);
    call_stamp(&span);
    made(&span, &message, error, new_comm);
    leave(t);
    return error;
}

int wrap_MPI_Cart_sub(MPI_Comm comm, const int remain[], MPI_Comm *new_comm)
{
    struct thread *t = enter();
    if (!t)
        return REAL(MPI_Cart_sub)(comm, remain, new_comm);
    struct message message = parent(comm);
    struct span span;
    call_begin(&span, t, CALL_MPI_Cart_sub, CALLER(), &message);
    int error = REAL(MPI_Cart_sub)(comm, remain, new_comm);
    call_stamp(&span);
    made(&span, &message, error, new_comm);
    leave(t);
    return error;
}

int wrap_MPI_Graph_create(MPI_Comm comm, int nodes, const int index[], const int edges[], int reorder,
                          MPI_Comm *new_comm)
{
    struct thread *t = enter();
    if (!t)
        return REAL(MPI_Graph_create)(comm, nodes, index, edges, reorder, new_comm);
    struct message message = parent(comm);
    struct span span;
    call_begin(&span, t, CALL_MPI_Graph_create, CALLER(), &message);
    int error = REAL(MPI_Graph_create)(comm, nodes, index, edges, reorder, new_comm);
    call_stamp(&span);
    made(&span, &message, error, new_comm);
    leave(t);
    return error;
}

int wrap_MPI_Dist_graph_create(MPI_Comm comm, int n, const int sources[], const int degrees[],
                               const int destinations[], const int weights[], MPI_Info info, int reorder,
                               MPI_Comm *new_comm)
{
    struct thread *t = enter();
    if (!t)
        return REAL(MPI_Dist_graph_create)(comm, n, sources, degrees, destinations, weights, info, reorder,
                                           new_comm);
    struct message message = parent(comm);
    struct span span;
    call_begin(&span, t, CALL_MPI_Dist_graph_create, CALLER(), &message);
    int error = REAL(MPI_Dist_graph_create)(comm, n, sources, degrees, destinations, weights, info, reorder,
                                            new_comm);
    call_stamp(&span);
    made(&span, &message, error, new_comm);
    leave(t);
    return error;
}

int wrap_MPI_Dist_graph_create_adjacent(MPI_Comm comm, int in_degree, const int sources[],
                                        const int source_weights[], int out_degree, const int destinations[],
                                        const int destination_weights[], MPI_Info info, int reorder,
                                        MPI_Comm *new_comm)
{
    struct thread *t = enter();
    if (!t)
        return REAL(MPI_Dist_graph_create_adjacent)(comm, in_degree, sources, source_weights, out_degree,
                                                    destinations, destination_weights, info, reorder, new_comm);
    struct message message = parent(comm);
    struct span span;
    call_begin(&span, t, CALL_MPI_Dist_graph_create_adjacent, CALLER(), &message);
    int error = REAL(MPI_Dist_graph_create_adjacent)(comm, in_degree, sources, source_weights, out_degree,
                                                     destinations, destination_weights, info, reorder, new_comm);
    call_stamp(&span);
    made(&span, &message, error, new_comm);
    leave(t);
    return error;
}

int wrap_MPI_Intercomm_create(MPI_Comm local, int local_leader, MPI_Comm peer, int remote_leader, int tag,
                              MPI_Comm *new_comm)
{
    struct thread *t = enter();
    if (!t)
        return REAL(MPI_Intercomm_create)(local, local_leader, peer, remote_leader, tag, new_comm);
    struct message message = parent(local);
    struct span span;
    call_begin(&span, t, CALL_MPI_Intercomm_create, CALLER(), &message);
    int error = REAL(MPI_Intercomm_create)(local, local_leader, peer, remote_leader, tag, new_comm);
    call_stamp(&span);
    made(&span, &message, error, new_comm);
    leave(t);
    return error;
}

int wrap_MPI_Intercomm_merge(MPI_Comm comm, int high, MPI_Comm *new_comm)
{
    struct thread *t = enter();
    if (!t)
        return REAL(MPI_Intercomm_merge)(comm, high, new_comm);
    struct message message = parent(comm);
    struct span span;
    call_begin(&span, t, CALL_MPI_Intercomm_merge, CALLER(), &message);
    int error = REAL(MPI_Intercomm_merge)(comm, high, new_comm);
    call_stamp(&span);
    made(&span, &message, error, new_comm);
    leave(t);
    return error;
}

int wrap_MPI_Comm_free(MPI_Comm *comm)
{
    struct thread *t = comm ? enter() : NULL;
    if (!t)
        return REAL(MPI_Comm_free)(comm);
    struct span span;
    call_begin(&span, t, CALL_MPI_Comm_free, CALLER(), NULL);
    comm_forget(*comm); /* before MPI may give the handle to another thread's new communicator */
    int error = REAL(MPI_Comm_free)(comm);
    call_stamp(&span);
    record_call(&span, NULL, NULL);
    leave(t);
    return error;
}

int wrap_MPI_Comm_disconnect(MPI_Comm *comm)
{
    struct thread *t = comm ? enter() : NULL;
    if (!t)
        return REAL(MPI_Comm_disconnect)(comm);
    struct span span;
    call_begin(&span, t, CALL_MPI_Comm_disconnect, CALLER(), NULL);
    comm_forget(*comm); /* before MPI may give the handle to another thread's new communicator */
    int error = REAL(MPI_Comm_disconnect)(comm);
    call_stamp(&span);
    record_call(&span, NULL, NULL);
    leave(t);
    return error;
}
