/*
 * Calls that complete, test, free or cancel requests, from Fortran: the real Fortran function is called with the
 * application's own arguments, and a status of ours where it wants none. Indices count from 1.
 */
#include "completion.h"
#include "wrap_fortran.h"

/* --- waiting ------------------------------------------------------------------------------------------------------ */

static inline ALWAYS_INLINE void fortran_wait(F_MPI_Wait_fn *real, MPI_Fint *request, MPI_Fint *status,
                                              MPI_Fint *ierror)
{
    struct thread *t = enter();
    if (!t) {
        real(request, status, ierror);
        return;
    }
    MPI_Fint own_error;
    struct span span;
    struct batch batch;
    struct spool_live *detached;
    MPI_Request handle = request_f2c(*request);
    MPI_Status own;
    ierror = ierror ? ierror : &own_error;
    status = fortran_wanted(status, &own);
    batch_take_one(&batch, t, &handle, request, status, 1, &detached);
    call_begin(&span, t, CALL_MPI_Wait, CALLER(), NULL);
    real(request, status, ierror);
    call_stamp(&span);
    MPI_Status copy;
    complete_one(&span, &batch, 0, status_at(&batch, 0, &copy), *ierror, SPOOL_WAITED);
    batch_return(&batch);
    leave(t);
}

void wrap_F_MPI_Wait(MPI_Fint *request, MPI_Fint *status, MPI_Fint *ierror)
{
    fortran_wait(REAL(F_MPI_Wait), request, status, ierror);
}

void wrap_F08_MPI_Wait(MPI_Fint *request, MPI_Fint *status, MPI_Fint *ierror)
{
    fortran_wait(REAL(F08_MPI_Wait), request, status, ierror);
}

static inline ALWAYS_INLINE void fortran_waitall(F_MPI_Waitall_fn *real, const MPI_Fint *count, MPI_Fint *requests,
                                                 MPI_Fint *statuses, MPI_Fint *ierror)
{
    struct batch batch;
    struct thread *t = enter();
    if (!t || !batch_take_fortran(&batch, t, *count, requests, statuses)) {
        real(count, requests, statuses, ierror);
        if (t)
            leave(t);
        return;
    }
    MPI_Fint own_error;
    struct span span;
    ierror = ierror ? ierror : &own_error;
    call_begin(&span, t, CALL_MPI_Waitall, CALLER(), NULL);
    real(count, requests, batch.statuses, ierror);
    call_stamp(&span);
    complete_all(&span, &batch, *ierror, SPOOL_WAITED);
    batch_return(&batch);
    leave(t);
}

void wrap_F_MPI_Waitall(const MPI_Fint *count, MPI_Fint *requests, MPI_Fint *statuses, MPI_Fint *ierror)
{
    fortran_waitall(REAL(F_MPI_Waitall), count, requests, statuses, ierror);
}

void wrap_F08_MPI_Waitall(const MPI_Fint *count, MPI_Fint *requests, MPI_Fint *statuses, MPI_Fint *ierror)
{
    fortran_waitall(REAL(F08_MPI_Waitall), count, requests, statuses, ierror);
}

static inline ALWAYS_INLINE void fortran_waitany(F_MPI_Waitany_fn *real, const MPI_Fint *count, MPI_Fint *requests,
                                                 MPI_Fint *index, MPI_Fint *status, MPI_Fint *ierror)
{
    struct batch batch;
    struct thread *t = enter();
    if (!t || !batch_take_fortran(&batch, t, *count, requests, NULL)) {
        real(count, requests, index, status, ierror);
        if (t)
            leave(t);
        return;
    }
    MPI_Fint own_error;
    struct span span;
    MPI_Status own;
    ierror = ierror ? ierror : &own_error;
    batch.statuses = fortran_wanted(status, &own);
    call_begin(&span, t, CALL_MPI_Waitany, CALLER(), NULL);
    real(count, requests, index, batch.statuses, ierror);
    call_stamp(&span);
    waited_any(&span, &batch, *index, *ierror);
    batch_return(&batch);
    leave(t);
}

void wrap_F_MPI_Waitany(const MPI_Fint *count, MPI_Fint *requests, MPI_Fint *index, MPI_Fint *status, MPI_Fint *ierror)
{
    fortran_waitany(REAL(F_MPI_Waitany), count, requests, index, status, ierror);
}

void wrap_F08_MPI_Waitany(const MPI_Fint *count, MPI_Fint *requests, MPI_Fint *index, MPI_Fint *status,
                          MPI_Fint *ierror)
{
    fortran_waitany(REAL(F08_MPI_Waitany), count, requests, index, status, ierror);
}

static inline ALWAYS_INLINE void fortran_waitsome(F_MPI_Waitsome_fn *real, const MPI_Fint *count, MPI_Fint *requests,
                                                  MPI_Fint *completed, MPI_Fint *indices, MPI_Fint *statuses,
                                                  MPI_Fint *ierror)
{
    struct batch batch;
    struct thread *t = enter();
    if (!t || !batch_take_fortran(&batch, t, *count, requests, statuses)) {
        real(count, requests, completed, indices, statuses, ierror);
        if (t)
            leave(t);
        return;
    }
    MPI_Fint own_error;
    struct span span;
    ierror = ierror ? ierror : &own_error;
    call_begin(&span, t, CALL_MPI_Waitsome, CALLER(), NULL);
    real(count, requests, completed, indices, batch.statuses, ierror);
    call_stamp(&span);
    waited_some(&span, &batch, *completed, indices, *ierror);
    batch_return(&batch);
    leave(t);
}

void wrap_F_MPI_Waitsome(const MPI_Fint *count, MPI_Fint *requests, MPI_Fint *completed, MPI_Fint *indices,
                         MPI_Fint *statuses, MPI_Fint *ierror)
{
    fortran_waitsome(REAL(F_MPI_Waitsome), count, requests, completed, indices, statuses, ierror);
}

void wrap_F08_MPI_Waitsome(const MPI_Fint *count, MPI_Fint *requests, MPI_Fint *completed, MPI_Fint *indices,
                           MPI_Fint *statuses, MPI_Fint *ierror)
{
    fortran_waitsome(REAL(F08_MPI_Waitsome), count, requests, completed, indices, statuses, ierror);
}

/* --- testing ------------------------------------------------------------------------------------------------------ */

static inline ALWAYS_INLINE void fortran_test(F_MPI_Test_fn *real, MPI_Fint *request, MPI_Fint *flag, MPI_Fint *status,
                                              MPI_Fint *ierror)
{
    struct thread *t = enter();
    if (!t) {
        real(request, flag, status, ierror);
        return;
    }
    MPI_Fint own_error;
    struct span span;
    struct batch batch;
    struct spool_live *detached;
    MPI_Request handle = request_f2c(*request);
    MPI_Status own;
    ierror = ierror ? ierror : &own_error;
    status = fortran_wanted(status, &own);
    batch_take_one(&batch, t, &handle, request, status, 1, &detached);
    call_begin(&span, t, CALL_MPI_Test, CALLER(), NULL);
    real(request, flag, status, ierror);
    call_stamp(&span);
    tested_one(&span, &batch, *flag, *ierror);
    batch_return(&batch);
    leave(t);
}

void wrap_F_MPI_Test(MPI_Fint *request, MPI_Fint *flag, MPI_Fint *status, MPI_Fint *ierror)
{
    fortran_test(REAL(F_MPI_Test), request, flag, status, ierror);
}

void wrap_F08_MPI_Test(MPI_Fint *request, MPI_Fint *flag, MPI_Fint *status, MPI_Fint *ierror)
{
    fortran_test(REAL(F08_MPI_Test), request, flag, status, ierror);
}

static inline ALWAYS_INLINE void fortran_testall(F_MPI_Testall_fn *real, const MPI_Fint *count, MPI_Fint *requests,
                                                 MPI_Fint *flag, MPI_Fint *statuses, MPI_Fint *ierror)
{
    struct batch batch;
    struct thread *t = enter();
    if (!t || !batch_take_fortran(&batch, t, *count, requests, statuses)) {
        real(count, requests, flag, statuses, ierror);
        if (t)
            leave(t);
        return;
    }
    MPI_Fint own_error;
    struct span span;
    ierror = ierror ? ierror : &own_error;
    call_begin(&span, t, CALL_MPI_Testall, CALLER(), NULL);
    real(count, requests, flag, batch.statuses, ierror);
    call_stamp(&span);
    tested_all(&span, &batch, *flag, *ierror);
    batch_return(&batch);
    leave(t);
}

void wrap_F_MPI_Testall(const MPI_Fint *count, MPI_Fint *requests, MPI_Fint *flag, MPI_Fint *statuses, MPI_Fint *ierror)
{
    fortran_testall(REAL(F_MPI_Testall), count, requests, flag, statuses, ierror);
}

void wrap_F08_MPI_Testall(const MPI_Fint *count, MPI_Fint *requests, MPI_Fint *flag, MPI_Fint *statuses,
                          MPI_Fint *ierror)
{
    fortran_testall(REAL(F08_MPI_Testall), count, requests, flag, statuses, ierror);
}

static inline ALWAYS_INLINE void fortran_testany(F_MPI_Testany_fn *real, const MPI_Fint *count, MPI_Fint *requests,
                                                 MPI_Fint *index, MPI_Fint *flag, MPI_Fint *status, MPI_Fint *ierror)
{
    struct batch batch;
    struct thread *t = enter();
    if (!t || !batch_take_fortran(&batch, t, *count, requests, NULL)) {
        real(count, requests, index, flag, status, ierror);
        if (t)
            leave(t);
        return;
    }
    MPI_Fint own_error;
    struct span span;
    MPI_Status own;
    ierror = ierror ? ierror : &own_error;
    batch.statuses = fortran_wanted(status, &own);
    call_begin(&span, t, CALL_MPI_Testany, CALLER(), NULL);
    real(count, requests, index, flag, batch.statuses, ierror);
    call_stamp(&span);
    tested_any(&span, &batch, *flag, *index, *ierror);
    batch_return(&batch);
    leave(t);
}

void wrap_F_MPI_Testany(const MPI_Fint *count, MPI_Fint *requests, MPI_Fint *index, MPI_Fint *flag, MPI_Fint *status,
                        MPI_Fint *ierror)
{
    fortran_testany(REAL(F_MPI_Testany), count, requests, index, flag, status, ierror);
}

void wrap_F08_MPI_Testany(const MPI_Fint *count, MPI_Fint *requests, MPI_Fint *index, MPI_Fint *flag, MPI_Fint *status,
                          MPI_Fint *ierror)
{
    fortran_testany(REAL(F08_MPI_Testany), count, requests, index, flag, status, ierror);
}

static inline ALWAYS_INLINE void fortran_testsome(F_MPI_Testsome_fn *real, const MPI_Fint *count, MPI_Fint *requests,
                                                  MPI_Fint *completed, MPI_Fint *indices, MPI_Fint *statuses,
                                                  MPI_Fint *ierror)
{
    struct batch batch;
    struct thread *t = enter();
    if (!t || !batch_take_fortran(&batch, t, *count, requests, statuses)) {
        real(count, requests, completed, indices, statuses, ierror);
        if (t)
            leave(t);
        return;
    }
    MPI_Fint own_error;
    struct span span;
    ierror = ierror ? ierror : &own_error;
    call_begin(&span, t, CALL_MPI_Testsome, CALLER(), NULL);
    real(count, requests, completed, indices, batch.statuses, ierror);
    call_stamp(&span);
    tested_some(&span, &batch, *completed, indices, *ierror);
    batch_return(&batch);
    leave(t);
}

void wrap_F_MPI_Testsome(const MPI_Fint *count, MPI_Fint *requests, MPI_Fint *completed, MPI_Fint *indices,
                         MPI_Fint *statuses, MPI_Fint *ierror)
{
    fortran_testsome(REAL(F_MPI_Testsome), count, requests, completed, indices, statuses, ierror);
}

void wrap_F08_MPI_Testsome(const MPI_Fint *count, MPI_Fint *requests, MPI_Fint *completed, MPI_Fint *indices,
                           MPI_Fint *statuses, MPI_Fint *ierror)
{
    fortran_testsome(REAL(F08_MPI_Testsome), count, requests, completed, indices, statuses, ierror);
}

/* --- looking ------------------------------------------------------------------------------------------------------ */

static inline ALWAYS_INLINE void fortran_request_get_status(F_MPI_Request_get_status_fn *real, const MPI_Fint *request,
                                                            MPI_Fint *flag, MPI_Fint *status, MPI_Fint *ierror)
{
    struct thread *t = enter();
    if (!t) {
        real(request, flag, status, ierror);
        return;
    }
    MPI_Fint own_error;
    struct span span;
    ierror = ierror ? ierror : &own_error;
    call_begin(&span, t, CALL_MPI_Request_get_status, CALLER(), NULL);
    real(request, flag, status, ierror);
    call_stamp(&span);
    record_poll(&span);
    if (*ierror == MPI_SUCCESS)
        looked_at(&span, request_f2c(*request), request, *flag);
    leave(t);
}

void wrap_F_MPI_Request_get_status(const MPI_Fint *request, MPI_Fint *flag, MPI_Fint *status, MPI_Fint *ierror)
{
    fortran_request_get_status(REAL(F_MPI_Request_get_status), request, flag, status, ierror);
}

void wrap_F08_MPI_Request_get_status(const MPI_Fint *request, MPI_Fint *flag, MPI_Fint *status, MPI_Fint *ierror)
{
    fortran_request_get_status(REAL(F08_MPI_Request_get_status), request, flag, status, ierror);
}

static inline ALWAYS_INLINE void fortran_request_get_status_any(F_MPI_Request_get_status_any_fn *real,
                                                                const MPI_Fint *count, const MPI_Fint *requests,
                                                                MPI_Fint *index, MPI_Fint *flag, MPI_Fint *status,
                                                                MPI_Fint *ierror)
{
    struct thread *t = enter();
    if (!t) {
        real(count, requests, index, flag, status, ierror);
        return;
    }
    MPI_Fint own_error;
    struct span span;
    ierror = ierror ? ierror : &own_error;
    call_begin(&span, t, CALL_MPI_Request_get_status_any, CALLER(), NULL);
    real(count, requests, index, flag, status, ierror);
    call_stamp(&span);
    record_poll(&span);
    for (int i = 0; *ierror == MPI_SUCCESS && i < *count; i++)
        if (!*flag || i == *index - 1)
            looked_at(&span, request_f2c(requests[i]), &requests[i], *flag);
    leave(t);
}

void wrap_F_MPI_Request_get_status_any(const MPI_Fint *count, const MPI_Fint *requests, MPI_Fint *index, MPI_Fint *flag,
                                       MPI_Fint *status, MPI_Fint *ierror)
{
    fortran_request_get_status_any(REAL(F_MPI_Request_get_status_any), count, requests, index, flag, status, ierror);
}

void wrap_F08_MPI_Request_get_status_any(const MPI_Fint *count, const MPI_Fint *requests, MPI_Fint *index,
                                         MPI_Fint *flag, MPI_Fint *status, MPI_Fint *ierror)
{
    fortran_request_get_status_any(REAL(F08_MPI_Request_get_status_any), count, requests, index, flag, status, ierror);
}

static inline ALWAYS_INLINE void fortran_request_get_status_all(F_MPI_Request_get_status_all_fn *real,
                                                                const MPI_Fint *count, const MPI_Fint *requests,
                                                                MPI_Fint *flag, MPI_Fint *statuses, MPI_Fint *ierror)
{
    struct thread *t = enter();
    if (!t) {
        real(count, requests, flag, statuses, ierror);
        return;
    }
    MPI_Fint own_error;
    struct span span;
    ierror = ierror ? ierror : &own_error;
    call_begin(&span, t, CALL_MPI_Request_get_status_all, CALLER(), NULL);
    real(count, requests, flag, statuses, ierror);
    call_stamp(&span);
    record_poll(&span);
    for (int i = 0; *ierror == MPI_SUCCESS && (*flag || *count == 1) && i < *count; i++)
        looked_at(&span, request_f2c(requests[i]), &requests[i], *flag);
    leave(t);
}

void wrap_F_MPI_Request_get_status_all(const MPI_Fint *count, const MPI_Fint *requests, MPI_Fint *flag,
                                       MPI_Fint *statuses, MPI_Fint *ierror)
{
    fortran_request_get_status_all(REAL(F_MPI_Request_get_status_all), count, requests, flag, statuses, ierror);
}

void wrap_F08_MPI_Request_get_status_all(const MPI_Fint *count, const MPI_Fint *requests, MPI_Fint *flag,
                                         MPI_Fint *statuses, MPI_Fint *ierror)
{
    fortran_request_get_status_all(REAL(F08_MPI_Request_get_status_all), count, requests, flag, statuses, ierror);
}

static inline ALWAYS_INLINE void fortran_request_get_status_some(F_MPI_Request_get_status_some_fn *real,
                                                                 const MPI_Fint *count, const MPI_Fint *requests,
                                                                 MPI_Fint *completed, MPI_Fint *indices,
                                                                 MPI_Fint *statuses, MPI_Fint *ierror)
{
    struct thread *t = enter();
    if (!t) {
        real(count, requests, completed, indices, statuses, ierror);
        return;
    }
    MPI_Fint own_error;
    struct span span;
    ierror = ierror ? ierror : &own_error;
    call_begin(&span, t, CALL_MPI_Request_get_status_some, CALLER(), NULL);
    real(count, requests, completed, indices, statuses, ierror);
    call_stamp(&span);
    record_poll(&span);
    for (int i = 0; *ierror == MPI_SUCCESS && *completed != MPI_UNDEFINED && i < *completed; i++)
        looked_at(&span, request_f2c(requests[indices[i] - 1]), &requests[indices[i] - 1], 1);
    leave(t);
}

void wrap_F_MPI_Request_get_status_some(const MPI_Fint *count, const MPI_Fint *requests, MPI_Fint *completed,
                                        MPI_Fint *indices, MPI_Fint *statuses, MPI_Fint *ierror)
{
    fortran_request_get_status_some(REAL(F_MPI_Request_get_status_some), count, requests, completed, indices, statuses,
                                    ierror);
}

void wrap_F08_MPI_Request_get_status_some(const MPI_Fint *count, const MPI_Fint *requests, MPI_Fint *completed,
                                          MPI_Fint *indices, MPI_Fint *statuses, MPI_Fint *ierror)
{
    fortran_request_get_status_some(REAL(F08_MPI_Request_get_status_some), count, requests, completed, indices,
                                    statuses, ierror);
}

/* --- giving up ---------------------------------------------------------------------------------------------------- */

static inline ALWAYS_INLINE void fortran_request_free(F_MPI_Request_free_fn *real, MPI_Fint *request, MPI_Fint *ierror)
{
    struct thread *t = enter();
    if (!t) {
        real(request, ierror);
        return;
    }
    MPI_Fint own_error;
    struct span span;
    struct batch batch;
    struct spool_live *detached;
    MPI_Request handle = request_f2c(*request);
    ierror = ierror ? ierror : &own_error;
    batch_take_one(&batch, t, &handle, request, NULL, 1, &detached);
    call_begin(&span, t, CALL_MPI_Request_free, CALLER(), NULL);
    real(request, ierror);
    call_stamp(&span);
    freed(&span, &batch, *ierror);
    batch_return(&batch);
    leave(t);
}

void wrap_F_MPI_Request_free(MPI_Fint *request, MPI_Fint *ierror)
{
    fortran_request_free(REAL(F_MPI_Request_free), request, ierror);
}

void wrap_F08_MPI_Request_free(MPI_Fint *request, MPI_Fint *ierror)
{
    fortran_request_free(REAL(F08_MPI_Request_free), request, ierror);
}

static inline ALWAYS_INLINE void fortran_cancel(F_MPI_Cancel_fn *real, MPI_Fint *request, MPI_Fint *ierror)
{
    struct thread *t = enter();
    if (!t) {
        real(request, ierror);
        return;
    }
    MPI_Fint own_error;
    struct span span;
    ierror = ierror ? ierror : &own_error;
    call_begin(&span, t, CALL_MPI_Cancel, CALLER(), NULL);
    real(request, ierror);
    call_stamp(&span);
    cancelled(&span, request_f2c(*request), request, *ierror);
    leave(t);
}

void wrap_F_MPI_Cancel(MPI_Fint *request, MPI_Fint *ierror)
{
    fortran_cancel(REAL(F_MPI_Cancel), request, ierror);
}

void wrap_F08_MPI_Cancel(MPI_Fint *request, MPI_Fint *ierror)
{
    fortran_cancel(REAL(F08_MPI_Cancel), request, ierror);
}
