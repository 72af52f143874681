/*
 * Another tool in LD_PRELOAD: counts MPI_Isend and passes it on, and says at the end of the process how many it saw.
 */
#include <mpi.h>
#include <stdio.h>

static int seen;

int MPI_Isend(const void *buffer, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm, MPI_Request *request)
{
    seen++;
    return PMPI_Isend(buffer, count, type, dest, tag, comm, request);
}

__attribute__((destructor)) static void say(void)
{
    if (seen)
        printf("the other library saw %d sends\n", seen);
}
