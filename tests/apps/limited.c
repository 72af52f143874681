/*
 * limited KILOBYTES: may make no file larger than that from some moment after MPI_Init, and sends itself messages.
 * Rows: 40000 sends and receives, each pair ended by an MPI_Waitall, as far as there is room.
 */
#include "check.h"

#include <sys/resource.h>

enum { ROUNDS = 40000 };

int main(int argc, char **argv)
{
    MPI_Request requests[2];
    MPI_Init(&argc, &argv);
    CHECK(argc == 2);
    struct rlimit limit = {(rlim_t)atoi(argv[1]) << 10, RLIM_INFINITY};
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    for (int round = 0; round < ROUNDS; round++) {
        int out = round, in = -1;
        MPI_Irecv(&in, 1, MPI_INT, 0, round % 100, MPI_COMM_SELF, &requests[0]);
        MPI_Isend(&out, 1, MPI_INT, 0, round % 100, MPI_COMM_SELF, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        CHECK(in == round);
    }
    if (comm_rank(MPI_COMM_WORLD) == 0)
        printf("%d messages\n", ROUNDS);
    MPI_Finalize();
    return 0;
}
