/*
 * Messages and collectives of nothing: count 0, and a datatype of size 0.
 * Rows: bytes are 0, source and tag are there all the same.
 */
#include "check.h"

enum { BY_COUNT = 1, BY_TYPE = 2, BLOCKING = 3 };

int main(int argc, char **argv)
{
    int rank = start(&argc, &argv, 2), peer = 1 - rank;
    MPI_Datatype nothing;
    MPI_Request requests[4];
    MPI_Status statuses[4];
    MPI_Type_contiguous(0, MPI_INT, &nothing);
    MPI_Type_commit(&nothing);
    MPI_Irecv(NULL, 0, MPI_INT, peer, BY_COUNT, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(NULL, 5, nothing, peer, BY_TYPE, MPI_COMM_WORLD, &requests[1]);
    MPI_Isend(NULL, 0, MPI_DOUBLE, peer, BY_COUNT, MPI_COMM_WORLD, &requests[2]);
    MPI_Isend(NULL, 5, nothing, peer, BY_TYPE, MPI_COMM_WORLD, &requests[3]);
    MPI_Waitall(4, requests, statuses);
    CHECK(status_is(&statuses[0], peer, BY_COUNT, 0) && status_is(&statuses[1], peer, BY_TYPE, 0));
    if (rank == 0)
        MPI_Send(NULL, 0, MPI_CHAR, 1, BLOCKING, MPI_COMM_WORLD);
    else
        MPI_Recv(NULL, 0, MPI_CHAR, 0, BLOCKING, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Bcast(NULL, 0, MPI_INT, 1, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, NULL, 0, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Type_free(&nothing);
    if (rank == 0)
        puts("nothing");
    MPI_Finalize();
    return 0;
}
