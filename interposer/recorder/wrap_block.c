/* Point-to-point calls that return when they are done. Compiled twice: see large_count.h. */
#include "large_count.h"
#include "wrappers.h"

/* After a blocking send: its row, with bytes when the call was valid. */
static void sent(struct span *span, struct message *message, int error, COUNT count, MPI_Datatype type)
{
    if (error != MPI_SUCCESS) {
        record_call(span, NULL, NULL);
        return;
    }
    message->bytes = bytes_of((uint64_t)count, type);
    record_call(span, &(struct exchange){*message, *message}, NULL);
}

/* What a receive with room for `count` elements got. */
static struct exchange received(struct message message, const MPI_Status *status, COUNT count, MPI_Datatype type)
{
    message.bytes = bytes_of((uint64_t)count, type);
    return (struct exchange){message, message_received(&message, status)};
}

int SIZED(wrap_MPI_Send)(const void *buffer, COUNT count, MPI_Datatype type, int dest, int tag, MPI_Comm comm)
{
    struct thread *t = enter_unless_paused();
    if (!t)
        return REAL(SIZED(MPI_Send))(buffer, count, type, dest, tag, comm);
    struct message message = message_to(dest, tag, comm);
    struct span span;
    call_begin(&span, t, SIZED(CALL_MPI_Send), CALLER(), &message);
    int error = REAL(SIZED(MPI_Send))(buffer, count, type, dest, tag, comm);
    call_stamp(&span);
    sent(&span, &message, error, count, type);
    leave(t);
    return error;
}

int SIZED(wrap_MPI_Ssend)(const void *buffer, COUNT count, MPI_Datatype type, int dest, int tag, MPI_Comm comm)
{
    struct thread *t = enter_unless_paused();
    if (!t)
        return REAL(SIZED(MPI_Ssend))(buffer, count, type, dest, tag, comm);
    struct message message = message_to(dest, tag, comm);
    struct span span;
    call_begin(&span, t, SIZED(CALL_MPI_Ssend), CALLER(), &message);
    int error = REAL(SIZED(MPI_Ssend))(buffer, count, type, dest, tag, comm);
    call_stamp(&span);
    sent(&span, &message, error, count, type);
    leave(t);
    return error;
}

int SIZED(wrap_MPI_Bsend)(const void *buffer, COUNT count, MPI_Datatype type, int dest, int tag, MPI_Comm comm)
{
    struct thread *t = enter_unless_paused();
    if (!t)
        return REAL(SIZED(MPI_Bsend))(buffer, count, type, dest, tag, comm);
    struct message message = message_to(dest, tag, comm);
    struct span span;
    call_begin(&span, t, SIZED(CALL_MPI_Bsend), CALLER(), &message);
    int error = REAL(SIZED(MPI_Bsend))(buffer, count, type, dest, tag, comm);
    call_stamp(&span);
    sent(&span, &message, error, count, type);
    leave(t);
    return error;
}

int SIZED(wrap_MPI_Rsend)(const void *buffer, COUNT count, MPI_Datatype type, int dest, int tag, MPI_Comm comm)
{
    struct thread *t = enter_unless_paused();
    if (!t)
        return REAL(SIZED(MPI_Rsend))(buffer, count, type, dest, tag, comm);
    struct message message = message_to(dest, tag, comm);
    struct span span;
    call_begin(&span, t, SIZED(CALL_MPI_Rsend), CALLER(), &message);
    int error = REAL(SIZED(MPI_Rsend))(buffer, count, type, dest, tag, comm);
    call_stamp(&span);
    sent(&span, &message, error, count, type);
    leave(t);
    return error;
}

int SIZED(wrap_MPI_Recv)(void *buffer, COUNT count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Status *status)
{
    struct thread *t = enter_unless_paused();
    if (!t)
        return REAL(SIZED(MPI_Recv))(buffer, count, type, source, tag, comm, status);
    struct message message = message_from(source, tag, comm);
    MPI_Status own;
    struct span span;
    status = status == MPI_STATUS_IGNORE ? &own : status;
    call_begin(&span, t, SIZED(CALL_MPI_Recv), CALLER(), &message);
    int error = REAL(SIZED(MPI_Recv))(buffer, count, type, source, tag, comm, status);
    call_stamp(&span);
    if (error == MPI_SUCCESS) {
        struct exchange exchange = received(message, status, count, type);
        record_call(&span, &exchange, NULL);
    } else {
        record_call(&span, NULL, NULL);
    }
    leave(t);
    return error;
}

int SIZED(wrap_MPI_Sendrecv)(const void *send_buffer, COUNT send_count, MPI_Datatype send_type, int dest, int send_tag,
                      void *receive_buffer, COUNT receive_count, MPI_Datatype receive_type, int source, int receive_tag,
                      MPI_Comm comm, MPI_Status *status)
{
    struct thread *t = enter_unless_paused();
    if (!t)
        return REAL(SIZED(MPI_Sendrecv))(send_buffer, send_count, send_type, dest, send_tag, receive_buffer, receive_count,
                                  receive_type, source, receive_tag, comm, status);
    struct message message = message_to(dest, send_tag, comm);
    MPI_Status own;
    struct span span;
    status = status == MPI_STATUS_IGNORE ? &own : status;
    call_begin(&span, t, SIZED(CALL_MPI_Sendrecv), CALLER(), &message);
    int error = REAL(SIZED(MPI_Sendrecv))(send_buffer, send_count, send_type, dest, send_tag, receive_buffer, receive_count,
                                   receive_type, source, receive_tag, comm, status);
    call_stamp(&span);
    if (error == MPI_SUCCESS) {
        struct exchange receive = received(message_from(source, receive_tag, comm), status, receive_count, receive_type);
        message.bytes = bytes_of((uint64_t)send_count, send_type);
        record_call(&span, &(struct exchange){message, message}, &receive);
    } else {
        record_call(&span, NULL, NULL);
    }
    leave(t);
    return error;
}

int SIZED(wrap_MPI_Sendrecv_replace)(void *buffer, COUNT count, MPI_Datatype type, int dest, int send_tag, int source,
                              int receive_tag, MPI_Comm comm, MPI_Status *status)
{
    struct thread *t = enter_unless_paused();
    if (!t)
        return REAL(SIZED(MPI_Sendrecv_replace))(buffer, count, type, dest, send_tag, source, receive_tag, comm, status);
    struct message message = message_to(dest, send_tag, comm);
    MPI_Status own;
    struct span span;
    status = status == MPI_STATUS_IGNORE ? &own : status;
    call_begin(&span, t, SIZED(CALL_MPI_Sendrecv_replace), CALLER(), &message);
    int error = REAL(SIZED(MPI_Sendrecv_replace))(buffer, count, type, dest, send_tag, source, receive_tag, comm, status);
    call_stamp(&span);
    if (error == MPI_SUCCESS) {
        struct exchange receive = received(message_from(source, receive_tag, comm), status, count, type);
        message.bytes = bytes_of((uint64_t)count, type);
        record_call(&span, &(struct exchange){message, message}, &receive);
    } else {
        record_call(&span, NULL, NULL);
    }
    leave(t);
    return error;
}
