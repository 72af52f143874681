/*
 * Calls that complete, test, free or cancel requests, from C.
 *
 * A null pointer where MPI wants one goes straight to MPI, whose error it is.
 */
#include "completion.h"
#include "wrap_c.h"

/* --- waiting ------------------------------------------------------------------------------------------------------ */

int wrap_C_MPI_Wait(MPI_Request *request, MPI_Status *status)
{
    struct thread *t = request ? enter() : NULL;
    if (!t)
        return REAL(C_MPI_Wait)(request, status);
    MPI_Request handle = *request;
    MPI_Status own;
    struct span span;
    struct batch batch;
    struct spool_live *detached;
    status = wanted(status, &own);
    batch_take_one(&batch, t, &handle, request, status, 0, &detached);
    call_begin(&span, t, CALL_MPI_Wait, CALLER(), NULL);
    int error = REAL(C_MPI_Wait)(request, status);
    call_stamp(&span);
    complete_one(&span, &batch, 0, status, error, SPOOL_WAITED);
    batch_return(&batch);
    leave(t);
    return error;
}

int wrap_C_MPI_Waitall(int count, MPI_Request requests[], MPI_Status statuses[])
{
    struct batch batch;
    struct thread *t = (requests || count == 0) ? enter() : NULL;
    if (!t || !batch_take(&batch, t, count, requests, statuses)) {
        int error = REAL(C_MPI_Waitall)(count, requests, statuses);
        if (t)
            leave(t);
        return error;
    }
    struct span span;
    call_begin(&span, t, CALL_MPI_Waitall, CALLER(), NULL);
    int error = REAL(C_MPI_Waitall)(count, requests, batch.statuses);
    call_stamp(&span);
    complete_all(&span, &batch, error, SPOOL_WAITED);
    batch_return(&batch);
    leave(t);
    return error;
}

int wrap_C_MPI_Waitany(int count, MPI_Request requests[], int *index, MPI_Status *status)
{
    struct batch batch;
    struct thread *t = (requests || count == 0) ? enter() : NULL;
    if (!t || !batch_take(&batch, t, count, requests, MPI_STATUSES_IGNORE)) {
        int error = REAL(C_MPI_Waitany)(count, requests, index, status);
        if (t)
            leave(t);
        return error;
    }
    MPI_Status own;
    struct span span;
    batch.statuses = wanted(status, &own);
    call_begin(&span, t, CALL_MPI_Waitany, CALLER(), NULL);
    int error = REAL(C_MPI_Waitany)(count, requests, index, batch.statuses);
    call_stamp(&span);
    waited_any(&span, &batch, *index, error);
    batch_return(&batch);
    leave(t);
    return error;
}

int wrap_C_MPI_Waitsome(int count, MPI_Request requests[], int *completed, int indices[], MPI_Status statuses[])
{
    struct batch batch;
    struct thread *t = (requests || count == 0) ? enter() : NULL;
    if (!t || !batch_take(&batch, t, count, requests, statuses)) {
        int error = REAL(C_MPI_Waitsome)(count, requests, completed, indices, statuses);
        if (t)
            leave(t);
        return error;
    }
    struct span span;
    call_begin(&span, t, CALL_MPI_Waitsome, CALLER(), NULL);
    int error = REAL(C_MPI_Waitsome)(count, requests, completed, indices, batch.statuses);
    call_stamp(&span);
    waited_some(&span, &batch, *completed, indices, error);
    batch_return(&batch);
    leave(t);
    return error;
}

/* --- testing ------------------------------------------------------------------------------------------------------ */

int wrap_C_MPI_Test(MPI_Request *request, int *flag, MPI_Status *status)
{
    struct thread *t = request ? enter() : NULL;
    if (!t)
        return REAL(C_MPI_Test)(request, flag, status);
    MPI_Request handle = *request;
    MPI_Status own;
    struct span span;
    struct batch batch;
    struct spool_live *detached;
    status = wanted(status, &own);
    batch_take_one(&batch, t, &handle, request, status, 0, &detached);
    call_begin(&span, t, CALL_MPI_Test, CALLER(), NULL);
    int error = REAL(C_MPI_Test)(request, flag, status);
    call_stamp(&span);
    tested_one(&span, &batch, *flag, error);
    batch_return(&batch);
    leave(t);
    return error;
}

int wrap_C_MPI_Testall(int count, MPI_Request requests[], int *flag, MPI_Status statuses[])
{
    struct batch batch;
    struct thread *t = (requests || count == 0) ? enter() : NULL;
    if (!t || !batch_take(&batch, t, count, requests, statuses)) {
        int error = REAL(C_MPI_Testall)(count, requests, flag, statuses);
        if (t)
            leave(t);
        return error;
    }
    struct span span;
    call_begin(&span, t, CALL_MPI_Testall, CALLER(), NULL);
    int error = REAL(C_MPI_Testall)(count, requests, flag, batch.statuses);
    call_stamp(&span);
    tested_all(&span, &batch, *flag, error);
    batch_return(&batch);
    leave(t);
    return error;
}

int wrap_C_MPI_Testany(int count, MPI_Request requests[], int *index, int *flag, MPI_Status *status)
{
    struct batch batch;
    struct thread *t = (requests || count == 0) ? enter() : NULL;
    if (!t || !batch_take(&batch, t, count, requests, MPI_STATUSES_IGNORE)) {
        int error = REAL(C_MPI_Testany)(count, requests, index, flag, status);
        if (t)
            leave(t);
        return error;
    }
    MPI_Status own;
    struct span span;
    batch.statuses = wanted(status, &own);
    call_begin(&span, t, CALL_MPI_Testany, CALLER(), NULL);
    int error = REAL(C_MPI_Testany)(count, requests, index, flag, batch.statuses);
    call_stamp(&span);
    tested_any(&span, &batch, *flag, *index, error);
    batch_return(&batch);
    leave(t);
    return error;
}

int wrap_C_MPI_Testsome(int count, MPI_Request requests[], int *completed, int indices[], MPI_Status statuses[])
{
    struct batch batch;
    struct thread *t = (requests || count == 0) ? enter() : NULL;
    if (!t || !batch_take(&batch, t, count, requests, statuses)) {
        int error = REAL(C_MPI_Testsome)(count, requests, completed, indices, statuses);
        if (t)
            leave(t);
        return error;
    }
    struct span span;
    call_begin(&span, t, CALL_MPI_Testsome, CALLER(), NULL);
    int error = REAL(C_MPI_Testsome)(count, requests, completed, indices, batch.statuses);
    call_stamp(&span);
    tested_some(&span, &batch, *completed, indices, error);
    batch_return(&batch);
    leave(t);
    return error;
}

/* --- looking ------------------------------------------------------------------------------------------------------ */

int wrap_C_MPI_Request_get_status(MPI_Request request, int *flag, MPI_Status *status)
{
    struct thread *t = enter();
    if (!t)
        return REAL(C_MPI_Request_get_status)(request, flag, status);
    struct span span;
    call_begin(&span, t, CALL_MPI_Request_get_status, CALLER(), NULL);
    int error = REAL(C_MPI_Request_get_status)(request, flag, status);
    call_stamp(&span);
    record_poll(&span);
    if (error == MPI_SUCCESS)
        looked_at(&span, request, NULL, *flag); /* it comes by value: its variable is not known */
    leave(t);
    return error;
}

int wrap_C_MPI_Request_get_status_any(int count, const MPI_Request requests[], int *index, int *flag, MPI_Status *status)
{
    struct thread *t = enter();
    if (!t)
        return REAL(C_MPI_Request_get_status_any)(count, requests, index, flag, status);
    struct span span;
    call_begin(&span, t, CALL_MPI_Request_get_status_any, CALLER(), NULL);
    int error = REAL(C_MPI_Request_get_status_any)(count, requests, index, flag, status);
    call_stamp(&span);
    record_poll(&span);
    for (int i = 0; error == MPI_SUCCESS && i < count; i++)
        if (!*flag || i == *index)
            looked_at(&span, requests[i], &requests[i], *flag);
    leave(t);
    return error;
}

int wrap_C_MPI_Request_get_status_all(int count, const MPI_Request requests[], int *flag, MPI_Status statuses[])
{
    struct thread *t = enter();
    if (!t)
        return REAL(C_MPI_Request_get_status_all)(count, requests, flag, statuses);
    struct span span;
    call_begin(&span, t, CALL_MPI_Request_get_status_all, CALLER(), NULL);
    int error = REAL(C_MPI_Request_get_status_all)(count, requests, flag, statuses);
    call_stamp(&span);
    record_poll(&span);
    for (int i = 0; error == MPI_SUCCESS && (*flag || count == 1) && i < count; i++)
        looked_at(&span, requests[i], &requests[i], *flag);
    leave(t);
    return error;
}

int wrap_C_MPI_Request_get_status_some(int count, const MPI_Request requests[], int *completed, int indices[],
                                       MPI_Status statuses[])
{
    struct thread *t = enter();
    if (!t)
        return REAL(C_MPI_Request_get_status_some)(count, requests, completed, indices, statuses);
    struct span span;
    call_begin(&span, t, CALL_MPI_Request_get_status_some, CALLER(), NULL);
    int error = REAL(C_MPI_Request_get_status_some)(count, requests, completed, indices, statuses);
    call_stamp(&span);
    record_poll(&span);
    for (int i = 0; error == MPI_SUCCESS && *completed != MPI_UNDEFINED && i < *completed; i++)
        looked_at(&span, requests[indices[i]], &requests[indices[i]], 1);
    leave(t);
    return error;
}

/* --- giving up ---------------------------------------------------------------------------------------------------- */

int wrap_C_MPI_Request_free(MPI_Request *request)
{
    struct thread *t = request ? enter() : NULL;
    if (!t)
        return REAL(C_MPI_Request_free)(request);
    MPI_Request handle = *request;
    struct span span;
    struct batch batch;
    struct spool_live *detached;
    batch_take_one(&batch, t, &handle, request, NULL, 0, &detached);
    call_begin(&span, t, CALL_MPI_Request_free, CALLER(), NULL);
    int error = REAL(C_MPI_Request_free)(request);
    call_stamp(&span);
    freed(&span, &batch, error);
    batch_return(&batch);
    leave(t);
    return error;
}

int wrap_C_MPI_Cancel(MPI_Request *request)
{
    struct thread *t = request ? enter() : NULL;
    if (!t)
        return REAL(C_MPI_Cancel)(request);
    struct span span;
    call_begin(&span, t, CALL_MPI_Cancel, CALLER(), NULL);
    int error = REAL(C_MPI_Cancel)(request);
    call_stamp(&span);
    cancelled(&span, *request, request, error);
    leave(t);
    return error;
}
