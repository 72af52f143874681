/* Calls that make a point-to-point request. Compiled twice: see large_count.h. */
#include "large_count.h"
#include "wrappers.h"

int SIZED(wrap_MPI_Isend)(const void *buffer, COUNT count, MPI_Datatype type, int dest, int tag, MPI_Comm comm,
                          MPI_Request *request)
{
    struct thread *t = enter_unless_paused();
    if (!t)
        return REAL(SIZED(MPI_Isend))(buffer, count, type, dest, tag, comm, request);
    uint64_t begin = clock_now();
    int error = REAL(SIZED(MPI_Isend))(buffer, count, type, dest, tag, comm, request);
    uint64_t end = clock_now();
    if (error == MPI_SUCCESS) {
        struct message message = message_to(dest, tag, comm);
        message.bytes = bytes_of((uint64_t)count, type);
        record_post(t, SIZED(CALL_MPI_Isend), CALLER(), begin, end, &message, request);
    }
    leave(t);
    return error;
}

int SIZED(wrap_MPI_Issend)(const void *buffer, COUNT count, MPI_Datatype type, int dest, int tag, MPI_Comm comm,
                           MPI_Request *request)
{
    struct thread *t = enter_unless_paused();
    if (!t)
        return REAL(SIZED(MPI_Issend))(buffer, count, type, dest, tag, comm, request);
    uint64_t begin = clock_now();
    int error = REAL(SIZED(MPI_Issend))(buffer, count, type, dest, tag, comm, request);
    uint64_t end = clock_now();
    if (error == MPI_SUCCESS) {
        struct message message = message_to(dest, tag, comm);
        message.bytes = bytes_of((uint64_t)count, type);
        record_post(t, SIZED(CALL_MPI_Issend), CALLER(), begin, end, &message, request);
    }
    leave(t);
    return error;
}

int SIZED(wrap_MPI_Ibsend)(const void *buffer, COUNT count, MPI_Datatype type, int dest, int tag, MPI_Comm comm,
                           MPI_Request *request)
{
    struct thread *t = enter_unless_paused();
    if (!t)
        return REAL(SIZED(MPI_Ibsend))(buffer, count, type, dest, tag, comm, request);
    uint64_t begin = clock_now();
    int error = REAL(SIZED(MPI_Ibsend))(buffer, count, type, dest, tag, comm, request);
    uint64_t end = clock_now();
    if (error == MPI_SUCCESS) {
        struct message message = message_to(dest, tag, comm);
        message.bytes = bytes_of((uint64_t)count, type);
        record_post(t, SIZED(CALL_MPI_Ibsend), CALLER(), begin, end, &message, request);
    }
    leave(t);
    return error;
}

int SIZED(wrap_MPI_Irsend)(const void *buffer, COUNT count, MPI_Datatype type, int dest, int tag, MPI_Comm comm,
                           MPI_Request *request)
{
    struct thread *t = enter_unless_paused();
    if (!t)
        return REAL(SIZED(MPI_Irsend))(buffer, count, type, dest, tag, comm, request);
    uint64_t begin = clock_now();
    int error = REAL(SIZED(MPI_Irsend))(buffer, count, type, dest, tag, comm, request);
    uint64_t end = clock_now();
    if (error == MPI_SUCCESS) {
        struct message message = message_to(dest, tag, comm);
        message.bytes = bytes_of((uint64_t)count, type);
        record_post(t, SIZED(CALL_MPI_Irsend), CALLER(), begin, end, &message, request);
    }
    leave(t);
    return error;
}

int SIZED(wrap_MPI_Irecv)(void *buffer, COUNT count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
                          MPI_Request *request)
{
    struct thread *t = enter_unless_paused();
    if (!t)
        return REAL(SIZED(MPI_Irecv))(buffer, count, type, source, tag, comm, request);
    uint64_t begin = clock_now();
    int error = REAL(SIZED(MPI_Irecv))(buffer, count, type, source, tag, comm, request);
    uint64_t end = clock_now();
    if (error == MPI_SUCCESS) {
        struct message message = message_from(source, tag, comm);
        message.bytes = bytes_of((uint64_t)count, type);
        record_post(t, SIZED(CALL_MPI_Irecv), CALLER(), begin, end, &message, request);
    }
    leave(t);
    return error;
}
