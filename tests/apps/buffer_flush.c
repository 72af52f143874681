/*
 * Buffers of MPI-4.1: flushed, of a communicator and of the process, blocking and not.
 * Rows: calls and requests of kind other.
 */
#include "check.h"

enum { BYTES = 1000, TAG = 1 };

static void *attach(MPI_Comm comm)
{
    int size = 4 * (BYTES + MPI_BSEND_OVERHEAD);
    void *buffer = malloc((size_t)size);
    if (comm == MPI_COMM_NULL)
        MPI_Buffer_attach(buffer, size);
    else
        MPI_Comm_attach_buffer(comm, buffer, size);
    return buffer;
}

static void send_and_flush(MPI_Comm comm)
{
    char data[BYTES];
    MPI_Request requests[2];
    void *own = attach(MPI_COMM_NULL), *of_comm = attach(comm), *back;
    int size;
    fill(data, BYTES, 1);
    MPI_Bsend(data, BYTES, MPI_BYTE, 1, TAG, comm);
    MPI_Bsend(data, BYTES, MPI_BYTE, 1, TAG, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Buffer_flush();
    MPI_Comm_flush_buffer(comm);
    MPI_Buffer_iflush(&requests[0]);
    MPI_Comm_iflush_buffer(comm, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    MPI_Comm_detach_buffer(comm, &back, &size);
    CHECK(back == of_comm);
    MPI_Buffer_detach(&back, &size);
    CHECK(back == own);
    free(own);
    free(of_comm);
}

int main(int argc, char **argv)
{
    int rank = start(&argc, &argv, 2);
    char data[BYTES];
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    if (rank == 0) {
        send_and_flush(comm);
        puts("flushed");
    } else {
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Recv(data, BYTES, MPI_BYTE, 0, TAG, comm, MPI_STATUS_IGNORE);
        MPI_Recv(data, BYTES, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK(holds(data, BYTES, 1));
    }
    MPI_Comm_free(&comm);
    MPI_Finalize();
    return 0;
}
