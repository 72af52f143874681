/*
 * silent TIMES MILLISECONDS: so many times rank 1 sleeps outside of MPI while rank 0 waits for it; then rank 0 says that it is done.
 */
#include "check.h"

#include <unistd.h>

int main(int argc, char **argv)
{
    int rank = start(&argc, &argv, 2), number = 0;
    CHECK(argc == 3);
    for (int i = 0; i < atoi(argv[1]); i++) {
        if (rank == 1) {
            usleep((useconds_t)atoi(argv[2]) * 1000);
            MPI_Send(&number, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
        } else {
            MPI_Recv(&number, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        printf("done\n");
    MPI_Finalize();
    return 0;
}
