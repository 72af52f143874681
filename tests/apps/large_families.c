/*
 * Counts of MPI_Count in the other families: messages of each kind, windows, files.
 * Rows: as of the forms with int, under their own names.
 */
#include "file.h"

enum { BYTES = 40 };

static int rank, peer;
static char out[BYTES], in[BYTES];

static void messages(void)
{
    MPI_Request requests[2];
    MPI_Message message;
    fill(out, BYTES, rank);
    MPI_Sendrecv_c(out, BYTES, MPI_BYTE, peer, 1, in, BYTES, MPI_BYTE, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(holds(in, BYTES, peer));
    MPI_Recv_init_c(in, BYTES, MPI_BYTE, peer, 2, MPI_COMM_WORLD, &requests[0]);
    MPI_Ssend_init_c(out, BYTES, MPI_BYTE, peer, 2, MPI_COMM_WORLD, &requests[1]);
    MPI_Startall(2, requests);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
    CHECK(holds(in, BYTES, peer));
    if (rank == 0) {
        MPI_Issend_c(out, BYTES, MPI_BYTE, peer, 3, MPI_COMM_WORLD, &requests[0]);
        MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
        MPI_Ssend_c(out, BYTES, MPI_BYTE, peer, 4, MPI_COMM_WORLD);
        return;
    }
    MPI_Mprobe(0, 3, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
    MPI_Imrecv_c(in, BYTES, MPI_BYTE, &message, &requests[0]);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    MPI_Mprobe(0, 4, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
    MPI_Mrecv_c(in, BYTES, MPI_BYTE, &message, MPI_STATUS_IGNORE);
    CHECK(holds(in, BYTES, 0));
}

static void windows(void)
{
    char *memory;
    MPI_Win window;
    MPI_Request request;
    MPI_Win_allocate_c(BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
    MPI_Win_fence(0, window);
    MPI_Put_c(out, BYTES, MPI_BYTE, peer, 0, BYTES, MPI_BYTE, window);
    MPI_Win_fence(0, window);
    CHECK(MPICH_OF_4_0 || holds(memory, BYTES, peer)); /* there it has not arrived yet */
    MPI_Win_fence(0, window);
    MPI_Win_lock(MPI_LOCK_SHARED, peer, 0, window);
    MPI_Rget_c(in, BYTES, MPI_BYTE, peer, 0, BYTES, MPI_BYTE, window, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Win_unlock(peer, window);
    CHECK(MPICH_OF_4_0 || holds(in, BYTES, rank));
    MPI_Win_free(&window);
}

static void files(void)
{
    MPI_File file = open_file("data");
    MPI_Request request;
    MPI_Status status;
    MPI_File_write_at_all_c(file, BYTES * rank, out, BYTES, MPI_BYTE, &status);
    CHECK(count_bytes(&status) == BYTES);
    MPI_File_sync(file);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_iread_at_c(file, BYTES * peer, in, BYTES, MPI_BYTE, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(holds(in, BYTES, peer));
    MPI_File_close(&file);
}

int main(int argc, char **argv)
{
    rank = start(&argc, &argv, 2);
    peer = 1 - rank;
    messages();
    windows();
    files();
    if (rank == 0)
        puts("messages, windows, files");
    MPI_Finalize();
    return 0;
}
