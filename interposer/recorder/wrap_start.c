/* Calls that start persistent requests. MPI_Startall starts them one behind the other: each has its share of the time. */
#include "wrap_fortran.h"

/* What MPI_Startall did to the request at a place of `count`. */
static void started_at(struct thread *t, struct caller caller, uint64_t begin, uint64_t end, int at, int count,
                       MPI_Request handle, const void *variable)
{
    uint64_t share = (end - begin) / (unsigned)count, from_here = begin + share * (unsigned)at;
    record_start(t, CALL_MPI_Startall, caller, from_here, from_here + share, handle, variable);
}

int wrap_C_MPI_Start(MPI_Request *request)
{
    struct thread *t = request ? enter_unless_paused() : NULL;
    if (!t)
        return REAL(C_MPI_Start)(request);
    uint64_t begin = clock_now();
    int error = REAL(C_MPI_Start)(request);
    uint64_t end = clock_now();
    if (error == MPI_SUCCESS)
        record_start(t, CALL_MPI_Start, CALLER(), begin, end, *request, request);
    leave(t);
    return error;
}

int wrap_C_MPI_Startall(int count, MPI_Request requests[])
{
    struct thread *t = enter_unless_paused();
    if (!t)
        return REAL(C_MPI_Startall)(count, requests);
    uint64_t begin = clock_now();
    int error = REAL(C_MPI_Startall)(count, requests);
    uint64_t end = clock_now();
    for (int i = 0; error == MPI_SUCCESS && i < count; i++)
        started_at(t, CALLER(), begin, end, i, count, requests[i], &requests[i]);
    leave(t);
    return error;
}

static inline ALWAYS_INLINE void fortran_start(F_MPI_Start_fn *real, MPI_Fint *request, MPI_Fint *ierror)
{
    struct thread *t = enter_unless_paused();
    if (!t) {
        real(request, ierror);
        return;
    }
    MPI_Fint own_error;
    ierror = ierror ? ierror : &own_error;
    uint64_t begin = clock_now();
    real(request, ierror);
    uint64_t end = clock_now();
    if (*ierror == MPI_SUCCESS)
        record_start(t, CALL_MPI_Start, CALLER(), begin, end, request_f2c(*request), request);
    leave(t);
}

static inline ALWAYS_INLINE void fortran_startall(F_MPI_Startall_fn *real, const MPI_Fint *count, MPI_Fint requests[],
                                                  MPI_Fint *ierror)
{
    struct thread *t = enter_unless_paused();
    if (!t) {
        real(count, requests, ierror);
        return;
    }
    MPI_Fint own_error;
    ierror = ierror ? ierror : &own_error;
    uint64_t begin = clock_now();
    real(count, requests, ierror);
    uint64_t end = clock_now();
    for (int i = 0; *ierror == MPI_SUCCESS && i < *count; i++)
        started_at(t, CALLER(), begin, end, i, *count, request_f2c(requests[i]), &requests[i]);
    leave(t);
}

void wrap_F_MPI_Start(MPI_Fint *request, MPI_Fint *ierror)
{
    fortran_start(REAL(F_MPI_Start), request, ierror);
}

void wrap_F08_MPI_Start(MPI_Fint *request, MPI_Fint *ierror)
{
    fortran_start(REAL(F08_MPI_Start), request, ierror);
}

void wrap_F_MPI_Startall(const MPI_Fint *count, MPI_Fint *requests, MPI_Fint *ierror)
{
    fortran_startall(REAL(F_MPI_Startall), count, requests, ierror);
}

void wrap_F08_MPI_Startall(const MPI_Fint *count, MPI_Fint *requests, MPI_Fint *ierror)
{
    fortran_startall(REAL(F08_MPI_Startall), count, requests, ierror);
}
