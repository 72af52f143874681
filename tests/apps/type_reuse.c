/*
 * Datatypes of one to five doubles, each freed before the next is made, so that MPI uses one handle for different sizes, in
 * turn with a datatype of MPI's own.
 * Rows of a rank: for each size a send and a receive of two elements, 16 bytes a double; five of each of 4 bytes.
 */
#include "check.h"

enum { SIZES = 5, TYPED = 1, PLAIN = 2 };

static void exchange(int count, MPI_Datatype type, int tag, int peer, const void *out, void *in)
{
    MPI_Request requests[2];
    MPI_Irecv(in, count, type, peer, tag, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(out, count, type, peer, tag, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

int main(int argc, char **argv)
{
    int rank = start(&argc, &argv, 2), peer = 1 - rank;
    double out[2 * SIZES], in[2 * SIZES];
    for (int size = 1; size <= SIZES; size++) {
        int plain = -1;
        MPI_Datatype type;
        MPI_Type_contiguous(size, MPI_DOUBLE, &type);
        MPI_Type_commit(&type);
        fill(out, (int)sizeof out, size);
        exchange(2, type, TYPED, peer, out, in);
        CHECK(holds(in, 2 * size * (int)sizeof(double), size));
        exchange(1, MPI_INT, PLAIN, peer, &size, &plain);
        CHECK(plain == size);
        MPI_Type_free(&type);
    }
    if (rank == 0)
        puts("sizes are those of the datatypes that are");
    MPI_Finalize();
    return 0;
}
