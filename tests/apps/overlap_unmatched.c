/*
 * Messages that nobody receives, between others that are received: small ones, which an MPI keeps, so that the program
 * ends all the same.
 *
 *   overlap_unmatched
 *
 * Prints how many messages were received and how many were not: the first LOST of rank 0 to rank 1 with tag NEVER, some
 * waited for and some freed.
 */
#include "work.h"

enum { RECEIVED = 20, LOST = 5, BYTES = 24, ALWAYS = 7, NEVER = 13 };

static void send_one(int tag, int free_it)
{
    static char out[BYTES];
    MPI_Request request;
    MPI_Isend(out, BYTES, MPI_BYTE, 1, tag, MPI_COMM_WORLD, &request);
    if (free_it)
        MPI_Request_free(&request);
    else
        MPI_Wait(&request, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
    char in[BYTES];
    if (start(&argc, &argv, 2) == 0) {
        for (int i = 0; i < RECEIVED; i++) {
            if (i < LOST)
                send_one(NEVER, i % 2);
            send_one(ALWAYS, 0);
        }
        int64_t received = RECEIVED, lost = LOST;
        print_values("received", &received, 1);
        print_values("lost", &lost, 1);
    } else {
        for (int i = 0; i < RECEIVED; i++)
            MPI_Recv(in, BYTES, MPI_BYTE, 0, ALWAYS, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Finalize();
    return 0;
}
