/*
 * MPI_Buffer_detach, which waits until all buffered messages are on their way: 60 KB sent before the other rank receives.
 * Rows: the buffered sends, and one call of kind other.
 */
#include "check.h"

enum { BYTES = 30000, MESSAGES = 2, TAG = 1 };

int main(int argc, char **argv)
{
    char *data = malloc(BYTES);
    if (start(&argc, &argv, 2) == 0) {
        int size = MESSAGES * (BYTES + MPI_BSEND_OVERHEAD), detached;
        char *buffer = malloc((size_t)size), *back;
        MPI_Request request;
        MPI_Buffer_attach(buffer, size);
        fill(data, BYTES, 1);
        MPI_Bsend(data, BYTES, MPI_BYTE, 1, TAG, MPI_COMM_WORLD);
        MPI_Ibsend(data, BYTES, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Buffer_detach(&back, &detached);
        CHECK(back == buffer && detached == size);
        free(buffer);
        puts("detached");
    } else {
        MPI_Barrier(MPI_COMM_WORLD);
        for (int i = 0; i < MESSAGES; i++) {
            MPI_Recv(data, BYTES, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            CHECK(holds(data, BYTES, 1));
        }
    }
    free(data);
    MPI_Finalize();
    return 0;
}
