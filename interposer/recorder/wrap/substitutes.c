/* Under LAPSCOPE_BUFFER_SENDS: sends that may go from copies (sends/sends.h), and calls by which what was sent on a communicator, or
 * at all, has to have arrived: those of calls.def that say so. */
#include "substitutes.h"

#include "../sends/sends.h"
#include "wrap_fortran.h"

/* A request variable is what it was before. */
static void take_back(MPI_Request made, void *variable, const void *before, size_t bytes)
{
    mpi.Request_free(&made);
    memcpy(variable, before, bytes);
}

/* Arguments of Fortran's come by their addresses. */
static const MPI_Fint nobody = MPI_PROC_NULL, no_elements;
static const MPI_Count no_large_elements;

/* A section of an array, which its descriptor tells apart, has no address that it can be read at: MPI then calls its C function with
 * a datatype for it, which is another send that may be copied. */
static struct asked_send fortran_asked(int descriptors, const void *buf, int64_t count, MPI_Datatype type, int dest, int tag,
                                       MPI_Comm comm)
{
    struct asked_send asked = {NULL, count, type, dest, tag, comm};
    struct given_buffer given = fortran_buffer(buf, descriptors, (uint64_t)count, type);
    if (given.not == LEFT_OUT_NOT)
        asked.buffer = fortran_is_bottom(given.address) ? NULL : given.address;
    else
        asked.count = 0; /* which is not copied */
    return asked;
}

/* When a session ends, what was sent on its communicators has to be over, and nobody tells which those are. */
static const char sessions[] = "the program uses sessions";

#include "substitutes.inc"

void substitutes_install(void **table)
{
    if (sends_wanted())
        memcpy(table, all, sizeof all);
}
