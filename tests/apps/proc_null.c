/*
 * MPI_PROC_NULL as source and destination of every kind of call, alone and beside real messages. MPIs give all such
 * requests one handle, and this program moves the handles to other variables before it waits.
 * Rows: whatever the MPI says in the status, peer is NULL and posted_peer -2; sends have the bytes they were given, receives 0.
 */
#include "check.h"

enum { BYTES = 40, NOBODY = 1, REAL = 2 };

static int is_null_status(const MPI_Status *status)
{
    return status_is(status, MPI_PROC_NULL, MPI_ANY_TAG, 0);
}

static MPI_Request post_send(char *data, int dest, int tag)
{
    MPI_Request request;
    MPI_Isend(data, BYTES, MPI_BYTE, dest, tag, MPI_COMM_WORLD, &request);
    return request;
}

static MPI_Request post_receive(char *data, int source, int tag)
{
    MPI_Request request;
    MPI_Irecv(data, BYTES, MPI_BYTE, source, tag, MPI_COMM_WORLD, &request);
    return request;
}

static void non_blocking(int peer)
{
    char out[BYTES], in[BYTES], untouched[2][BYTES];
    MPI_Status statuses[6];
    fill(out, BYTES, REAL);
    fill(untouched[0], BYTES, 9);
    fill(untouched[1], BYTES, 9);
    MPI_Request requests[6] = {post_receive(untouched[0], MPI_PROC_NULL, NOBODY), post_receive(in, peer, REAL),
                               post_receive(untouched[1], MPI_PROC_NULL, NOBODY), post_send(out, MPI_PROC_NULL, NOBODY),
                               post_send(out, peer, REAL),                        post_send(out, MPI_PROC_NULL, NOBODY)};
    MPI_Waitall(6, requests, statuses);
    CHECK(count_bytes(&statuses[0]) == 0 && count_bytes(&statuses[2]) == 0); /* MPICH 4.0 says source 0 here */
    CHECK(status_is(&statuses[1], peer, REAL, BYTES) && holds(in, BYTES, REAL));
    CHECK(holds(untouched[0], BYTES, 9) && holds(untouched[1], BYTES, 9));
    for (int i = 0; i < 6; i++)
        CHECK(requests[i] == MPI_REQUEST_NULL);
}

static void blocking(void)
{
    char data[BYTES];
    MPI_Status status;
    int flag;
    fill(data, BYTES, 9);
    MPI_Send(data, BYTES, MPI_BYTE, MPI_PROC_NULL, NOBODY, MPI_COMM_WORLD);
    MPI_Recv(data, BYTES, MPI_BYTE, MPI_PROC_NULL, NOBODY, MPI_COMM_WORLD, &status);
    CHECK(is_null_status(&status));
    MPI_Probe(MPI_PROC_NULL, NOBODY, MPI_COMM_WORLD, &status);
    CHECK(is_null_status(&status));
    MPI_Iprobe(MPI_PROC_NULL, NOBODY, MPI_COMM_WORLD, &flag, &status);
    CHECK(flag && is_null_status(&status));
    MPI_Sendrecv_replace(data, BYTES, MPI_BYTE, MPI_PROC_NULL, NOBODY, MPI_PROC_NULL, NOBODY, MPI_COMM_WORLD, &status);
    CHECK(is_null_status(&status));
    CHECK(holds(data, BYTES, 9));
}

int main(int argc, char **argv)
{
    int rank = start(&argc, &argv, 2);
    non_blocking(1 - rank);
    blocking();
    if (rank == 0)
        puts("nobody answered");
    MPI_Finalize();
    return 0;
}
