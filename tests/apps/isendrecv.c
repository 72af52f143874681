/*
 * MPI_Isendrecv and MPI_Isendrecv_replace around a ring of three, the second one with receives from anybody and any tag.
 * Rows: one request of the sending half for each, with what was received beside it, as of MPI_Sendrecv.
 */
#include "check.h"

enum { UNIT = 100, MOST = 3 * UNIT, TAG = 10 };

int main(int argc, char **argv)
{
    int rank = start(&argc, &argv, 3), next = (rank + 1) % 3, previous = (rank + 2) % 3;
    int bytes = UNIT * (rank + 1), coming = UNIT * (previous + 1);
    char out[MOST], in[MOST], both[UNIT];
    MPI_Request request;
    MPI_Status status;
    fill(out, bytes, rank);
    MPI_Isendrecv(out, bytes, MPI_BYTE, next, TAG + rank, in, MOST, MPI_BYTE, previous, TAG + previous, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(request == MPI_REQUEST_NULL && holds(in, coming, previous));

    MPI_Barrier(MPI_COMM_WORLD);
    fill(both, UNIT, rank);
    MPI_Isendrecv_replace(both, UNIT, MPI_BYTE, previous, TAG, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &request);
    MPI_Waitall(1, &request, &status);
    CHECK(holds(both, UNIT, next));
    if (!MPICH_OF_4_0) { /* which reads memory that is not there */
        MPI_Isendrecv(out, UNIT, MPI_BYTE, MPI_PROC_NULL, TAG, both, UNIT, MPI_BYTE, MPI_PROC_NULL, TAG, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    CHECK(holds(both, UNIT, next));
    if (rank == 0)
        puts("around and back");
    MPI_Finalize();
    return 0;
}
