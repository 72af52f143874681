/* Under LAPSCOPE_BUFFER_SENDS: sends that may go from copies (sends/sends.h), and calls by which what was sent on a communicator, or
 * at all, has to have arrived. */
#include "substitutes.h"

#include "../sends/sends.h"
#include "wrap_fortran.h"

/* --- sends --------------------------------------------------------------------------------------------------------
 * The function that the application has called is first made to send nothing to MPI_PROC_NULL: it tells of wrong arguments, in the
 * way that the application has chosen, before anything is on its way; and makes the request that the application gets. */

/* A request variable is what it was before. */
static void take_back(MPI_Request made, void *variable, const void *before, size_t bytes)
{
    mpi.Request_free(&made);
    memcpy(variable, before, bytes);
}

static int substitute_C_MPI_Send(const void *buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm)
{
    struct asked_send asked = {buf, count, type, dest, tag, comm};
    struct copy *copy = sends_copy(&asked);
    if (!copy)
        return NEXT(C_MPI_Send)(buf, count, type, dest, tag, comm);
    int error = NEXT(C_MPI_Send)(buf, 0, type, MPI_PROC_NULL, tag, comm);
    enum sent sent = sends_send(copy, &asked, &error);
    return sent == SENT_NOT ? NEXT(C_MPI_Send)(buf, count, type, dest, tag, comm) : error;
}

static int substitute_C_MPI_Send_c(const void *buf, MPI_Count count, MPI_Datatype type, int dest, int tag, MPI_Comm comm)
{
    struct asked_send asked = {buf, count, type, dest, tag, comm};
    struct copy *copy = sends_copy(&asked);
    if (!copy)
        return NEXT(C_MPI_Send_c)(buf, count, type, dest, tag, comm);
    int error = NEXT(C_MPI_Send_c)(buf, 0, type, MPI_PROC_NULL, tag, comm);
    enum sent sent = sends_send(copy, &asked, &error);
    return sent == SENT_NOT ? NEXT(C_MPI_Send_c)(buf, count, type, dest, tag, comm) : error;
}

static int substitute_C_MPI_Isend(const void *buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm,
                                  MPI_Request *request)
{
    struct asked_send asked = {buf, count, type, dest, tag, comm};
    struct copy *copy = request ? sends_copy(&asked) : NULL;
    if (!copy)
        return NEXT(C_MPI_Isend)(buf, count, type, dest, tag, comm, request);
    MPI_Request before = *request;
    int error = NEXT(C_MPI_Isend)(buf, 0, type, MPI_PROC_NULL, tag, comm, request), is_made = error == MPI_SUCCESS;
    enum sent sent = sends_send(copy, &asked, &error);
    if (sent != SENT && is_made)
        take_back(*request, request, &before, sizeof before);
    return sent == SENT_NOT ? NEXT(C_MPI_Isend)(buf, count, type, dest, tag, comm, request) : error;
}

static int substitute_C_MPI_Isend_c(const void *buf, MPI_Count count, MPI_Datatype type, int dest, int tag, MPI_Comm comm,
                                    MPI_Request *request)
{
    struct asked_send asked = {buf, count, type, dest, tag, comm};
    struct copy *copy = request ? sends_copy(&asked) : NULL;
    if (!copy)
        return NEXT(C_MPI_Isend_c)(buf, count, type, dest, tag, comm, request);
    MPI_Request before = *request;
    int error = NEXT(C_MPI_Isend_c)(buf, 0, type, MPI_PROC_NULL, tag, comm, request), is_made = error == MPI_SUCCESS;
    enum sent sent = sends_send(copy, &asked, &error);
    if (sent != SENT && is_made)
        take_back(*request, request, &before, sizeof before);
    return sent == SENT_NOT ? NEXT(C_MPI_Isend_c)(buf, count, type, dest, tag, comm, request) : error;
}

/* --- sends, in Fortran: of integers by their addresses ------------------------------------------------------------- */

static const MPI_Fint nobody = MPI_PROC_NULL, no_elements;
static const MPI_Count no_large_elements;

/* A section of an array, which its descriptor tells apart, has no address that it can be read at: MPI then calls its C function with
 * a datatype for it, which is another send that may be copied. */
static struct asked_send asked_in_fortran(const void *buf, int descriptors, int64_t count, const MPI_Fint *type,
                                          const MPI_Fint *dest, const MPI_Fint *tag, const MPI_Fint *comm)
{
    struct asked_send asked = {NULL, count, type_f2c(*type), *dest, *tag, comm_f2c(*comm)};
    struct given_buffer given = fortran_buffer(buf, descriptors, (uint64_t)count, asked.type);
    if (given.not == LEFT_OUT_NOT)
        asked.buffer = fortran_is_bottom(given.address) ? NULL : given.address;
    else
        asked.count = 0; /* which is not copied */
    return asked;
}

static inline ALWAYS_INLINE void fortran_send(F_MPI_Send_fn *real, int descriptors, const void *buf, const MPI_Fint *count,
                                              const MPI_Fint *type, const MPI_Fint *dest, const MPI_Fint *tag,
                                              const MPI_Fint *comm, MPI_Fint *ierror)
{
    struct asked_send asked = asked_in_fortran(buf, descriptors, *count, type, dest, tag, comm);
    struct copy *copy = sends_copy(&asked);
    enum sent sent = SENT_NOT;
    if (copy) {
        MPI_Fint own_error = MPI_SUCCESS;
        real(buf, &no_elements, type, &nobody, tag, comm, &own_error);
        sent = sends_send(copy, &asked, &own_error);
        if (ierror)
            *ierror = own_error;
    }
    if (sent == SENT_NOT)
        real(buf, count, type, dest, tag, comm, ierror);
}

static inline ALWAYS_INLINE void fortran_send_c(F08_MPI_Send_c_fn *real, int descriptors, const void *buf,
                                                const MPI_Count *count, const MPI_Fint *type, const MPI_Fint *dest,
                                                const MPI_Fint *tag, const MPI_Fint *comm, MPI_Fint *ierror)
{
    struct asked_send asked = asked_in_fortran(buf, descriptors, *count, type, dest, tag, comm);
    struct copy *copy = sends_copy(&asked);
    enum sent sent = SENT_NOT;
    if (copy) {
        MPI_Fint own_error = MPI_SUCCESS;
        real(buf, &no_large_elements, type, &nobody, tag, comm, &own_error);
        sent = sends_send(copy, &asked, &own_error);
        if (ierror)
            *ierror = own_error;
    }
    if (sent == SENT_NOT)
        real(buf, count, type, dest, tag, comm, ierror);
}

static inline ALWAYS_INLINE void fortran_isend(F_MPI_Isend_fn *real, int descriptors, const void *buf, const MPI_Fint *count,
                                               const MPI_Fint *type, const MPI_Fint *dest, const MPI_Fint *tag,
                                               const MPI_Fint *comm, MPI_Fint *request, MPI_Fint *ierror)
{
    struct asked_send asked = asked_in_fortran(buf, descriptors, *count, type, dest, tag, comm);
    struct copy *copy = sends_copy(&asked);
    enum sent sent = SENT_NOT;
    if (copy) {
        MPI_Fint own_error = MPI_SUCCESS, before = *request;
        real(buf, &no_elements, type, &nobody, tag, comm, request, &own_error);
        int is_made = own_error == MPI_SUCCESS;
        sent = sends_send(copy, &asked, &own_error);
        if (sent != SENT && is_made)
            take_back(request_f2c(*request), request, &before, sizeof before);
        if (ierror)
            *ierror = own_error;
    }
    if (sent == SENT_NOT)
        real(buf, count, type, dest, tag, comm, request, ierror);
}

static inline ALWAYS_INLINE void fortran_isend_c(F08_MPI_Isend_c_fn *real, int descriptors, const void *buf,
                                                 const MPI_Count *count, const MPI_Fint *type, const MPI_Fint *dest,
                                                 const MPI_Fint *tag, const MPI_Fint *comm, MPI_Fint *request,
                                                 MPI_Fint *ierror)
{
    struct asked_send asked = asked_in_fortran(buf, descriptors, *count, type, dest, tag, comm);
    struct copy *copy = sends_copy(&asked);
    enum sent sent = SENT_NOT;
    if (copy) {
        MPI_Fint own_error = MPI_SUCCESS, before = *request;
        real(buf, &no_large_elements, type, &nobody, tag, comm, request, &own_error);
        int is_made = own_error == MPI_SUCCESS;
        sent = sends_send(copy, &asked, &own_error);
        if (sent != SENT && is_made)
            take_back(request_f2c(*request), request, &before, sizeof before);
        if (ierror)
            *ierror = own_error;
    }
    if (sent == SENT_NOT)
        real(buf, count, type, dest, tag, comm, request, ierror);
}

static void substitute_F_MPI_Send(const void *buf, const MPI_Fint *count, const MPI_Fint *type, const MPI_Fint *dest,
                                  const MPI_Fint *tag, const MPI_Fint *comm, MPI_Fint *ierror)
{
    fortran_send(NEXT(F_MPI_Send), 0, buf, count, type, dest, tag, comm, ierror);
}

static void substitute_F08_MPI_Send(const void *buf, const MPI_Fint *count, const MPI_Fint *type, const MPI_Fint *dest,
                                    const MPI_Fint *tag, const MPI_Fint *comm, MPI_Fint *ierror)
{
    fortran_send(NEXT(F08_MPI_Send), 0, buf, count, type, dest, tag, comm, ierror);
}

static void substitute_F08TS_MPI_Send(const void *buf, const MPI_Fint *count, const MPI_Fint *type, const MPI_Fint *dest,
                                      const MPI_Fint *tag, const MPI_Fint *comm, MPI_Fint *ierror)
{
    fortran_send(NEXT(F08TS_MPI_Send), 1, buf, count, type, dest, tag, comm, ierror);
}

static void substitute_F08_MPI_Send_c(const void *buf, const MPI_Count *count, const MPI_Fint *type, const MPI_Fint *dest,
                                      const MPI_Fint *tag, const MPI_Fint *comm, MPI_Fint *ierror)
{
    fortran_send_c(NEXT(F08_MPI_Send_c), 0, buf, count, type, dest, tag, comm, ierror);
}

static void substitute_F08TS_MPI_Send_c(const void *buf, const MPI_Count *count, const MPI_Fint *type, const MPI_Fint *dest,
                                        const MPI_Fint *tag, const MPI_Fint *comm, MPI_Fint *ierror)
{
    fortran_send_c(NEXT(F08TS_MPI_Send_c), 1, buf, count, type, dest, tag, comm, ierror);
}

static void substitute_F_MPI_Isend(const void *buf, const MPI_Fint *count, const MPI_Fint *type, const MPI_Fint *dest,
                                   const MPI_Fint *tag, const MPI_Fint *comm, MPI_Fint *request, MPI_Fint *ierror)
{
    fortran_isend(NEXT(F_MPI_Isend), 0, buf, count, type, dest, tag, comm, request, ierror);
}

static void substitute_F08_MPI_Isend(const void *buf, const MPI_Fint *count, const MPI_Fint *type, const MPI_Fint *dest,
                                     const MPI_Fint *tag, const MPI_Fint *comm, MPI_Fint *request, MPI_Fint *ierror)
{
    fortran_isend(NEXT(F08_MPI_Isend), 0, buf, count, type, dest, tag, comm, request, ierror);
}

static void substitute_F08TS_MPI_Isend(const void *buf, const MPI_Fint *count, const MPI_Fint *type, const MPI_Fint *dest,
                                       const MPI_Fint *tag, const MPI_Fint *comm, MPI_Fint *request, MPI_Fint *ierror)
{
    fortran_isend(NEXT(F08TS_MPI_Isend), 1, buf, count, type, dest, tag, comm, request, ierror);
}

static void substitute_F08_MPI_Isend_c(const void *buf, const MPI_Count *count, const MPI_Fint *type, const MPI_Fint *dest,
                                       const MPI_Fint *tag, const MPI_Fint *comm, MPI_Fint *request, MPI_Fint *ierror)
{
    fortran_isend_c(NEXT(F08_MPI_Isend_c), 0, buf, count, type, dest, tag, comm, request, ierror);
}

static void substitute_F08TS_MPI_Isend_c(const void *buf, const MPI_Count *count, const MPI_Fint *type, const MPI_Fint *dest,
                                         const MPI_Fint *tag, const MPI_Fint *comm, MPI_Fint *request, MPI_Fint *ierror)
{
    fortran_isend_c(NEXT(F08TS_MPI_Isend_c), 1, buf, count, type, dest, tag, comm, request, ierror);
}

/* --- ends of communicators and of MPI ----------------------------------------------------------------------------- */

static int substitute_C_MPI_Comm_free(MPI_Comm *comm)
{
    if (comm)
        sends_comm_freed(*comm);
    return NEXT(C_MPI_Comm_free)(comm);
}

static void substitute_F_MPI_Comm_free(MPI_Fint *comm, MPI_Fint *ierror)
{
    sends_comm_freed(comm_f2c(*comm));
    NEXT(F_MPI_Comm_free)(comm, ierror);
}

static void substitute_F08_MPI_Comm_free(MPI_Fint *comm, MPI_Fint *ierror)
{
    sends_comm_freed(comm_f2c(*comm));
    NEXT(F08_MPI_Comm_free)(comm, ierror);
}

static int substitute_C_MPI_Comm_disconnect(MPI_Comm *comm)
{
    if (comm)
        sends_comm_ends(*comm);
    return NEXT(C_MPI_Comm_disconnect)(comm);
}

static void substitute_F_MPI_Comm_disconnect(MPI_Fint *comm, MPI_Fint *ierror)
{
    sends_comm_ends(comm_f2c(*comm));
    NEXT(F_MPI_Comm_disconnect)(comm, ierror);
}

static void substitute_F08_MPI_Comm_disconnect(MPI_Fint *comm, MPI_Fint *ierror)
{
    sends_comm_ends(comm_f2c(*comm));
    NEXT(F08_MPI_Comm_disconnect)(comm, ierror);
}

static int substitute_C_MPI_Finalize(void)
{
    sends_end();
    return NEXT(C_MPI_Finalize)();
}

static void substitute_F_MPI_Finalize(MPI_Fint *ierror)
{
    sends_end();
    NEXT(F_MPI_Finalize)(ierror);
}

static void substitute_F08_MPI_Finalize(MPI_Fint *ierror)
{
    sends_end();
    NEXT(F08_MPI_Finalize)(ierror);
}

/* When a session ends, what was sent on its communicators has to be over, and nobody tells which those are. */
static const char sessions[] = "the program uses sessions";

static int substitute_C_MPI_Session_init(MPI_Info info, MPI_Errhandler errhandler, MPI_Session *session)
{
    sends_stop(sessions);
    return NEXT(C_MPI_Session_init)(info, errhandler, session);
}

static void substitute_F_MPI_Session_init(const MPI_Fint *info, const MPI_Fint *errhandler, MPI_Fint *session, MPI_Fint *ierror)
{
    sends_stop(sessions);
    NEXT(F_MPI_Session_init)(info, errhandler, session, ierror);
}

static void substitute_F08_MPI_Session_init(const MPI_Fint *info, const MPI_Fint *errhandler, MPI_Fint *session,
                                            MPI_Fint *ierror)
{
    sends_stop(sessions);
    NEXT(F08_MPI_Session_init)(info, errhandler, session, ierror);
}

/* --- the table ---------------------------------------------------------------------------------------------------- */

#define SUBSTITUTE(function) [FUNCTION_##function] = (void *)substitute_##function

static void *const all[FUNCTION_COUNT] = {
    SUBSTITUTE(C_MPI_Send),          SUBSTITUTE(C_MPI_Send_c),          SUBSTITUTE(C_MPI_Isend),
    SUBSTITUTE(C_MPI_Isend_c),       SUBSTITUTE(F_MPI_Send),            SUBSTITUTE(F08_MPI_Send),
    SUBSTITUTE(F08TS_MPI_Send),      SUBSTITUTE(F08_MPI_Send_c),        SUBSTITUTE(F08TS_MPI_Send_c),
    SUBSTITUTE(F_MPI_Isend),         SUBSTITUTE(F08_MPI_Isend),         SUBSTITUTE(F08TS_MPI_Isend),
    SUBSTITUTE(F08_MPI_Isend_c),     SUBSTITUTE(F08TS_MPI_Isend_c),     SUBSTITUTE(C_MPI_Comm_free),
    SUBSTITUTE(F_MPI_Comm_free),     SUBSTITUTE(F08_MPI_Comm_free),     SUBSTITUTE(C_MPI_Comm_disconnect),
    SUBSTITUTE(F_MPI_Comm_disconnect), SUBSTITUTE(F08_MPI_Comm_disconnect), SUBSTITUTE(C_MPI_Finalize),
    SUBSTITUTE(F_MPI_Finalize),      SUBSTITUTE(F08_MPI_Finalize),      SUBSTITUTE(C_MPI_Session_init),
    SUBSTITUTE(F_MPI_Session_init),  SUBSTITUTE(F08_MPI_Session_init)};

void substitutes_install(void **table)
{
    if (sends_wanted())
        memcpy(table, all, sizeof all);
}
