/* Calls that look for a message without receiving it. */
#include "wrappers.h"

int wrap_MPI_Probe(int source, int tag, MPI_Comm comm, MPI_Status *status)
{
    struct thread *t = enter_unless_paused();
    if (!t)
        return REAL(MPI_Probe)(source, tag, comm, status);
    struct message message = message_from(source, tag, comm);
    MPI_Status own;
    struct span span;
    status = status == MPI_STATUS_IGNORE ? &own : status;
    call_begin(&span, t, CALL_MPI_Probe, CALLER(), &message);
    int error = REAL(MPI_Probe)(source, tag, comm, status);
    call_stamp(&span);
    if (error == MPI_SUCCESS)
        record_call(&span, &(struct exchange){message, message_received(&message, status)}, NULL);
    else
        record_call(&span, NULL, NULL);
    leave(t);
    return error;
}

int wrap_MPI_Iprobe(int source, int tag, MPI_Comm comm, int *flag, MPI_Status *status)
{
    struct thread *t = enter_unless_paused();
    if (!t)
        return REAL(MPI_Iprobe)(source, tag, comm, flag, status);
    struct message message = message_from(source, tag, comm);
    MPI_Status own;
    struct span span;
    status = status == MPI_STATUS_IGNORE ? &own : status;
    call_begin(&span, t, CALL_MPI_Iprobe, CALLER(), &message);
    int error = REAL(MPI_Iprobe)(source, tag, comm, flag, status);
    call_stamp(&span);
    if (error == MPI_SUCCESS && *flag)
        record_call(&span, &(struct exchange){message, message_received(&message, status)}, NULL);
    else
        record_poll(&span);
    leave(t);
    return error;
}
