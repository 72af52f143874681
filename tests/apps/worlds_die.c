/* Two ranks spawn two, of which rank 1 is killed while its sibling waits for it. The launcher ends the others. */
#include "check.h"

#include <signal.h>
#include <unistd.h>

static void be_child(int rank)
{
    int nothing = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) {
        usleep(200000); /* its sibling is inside MPI_Recv by then */
        kill(getpid(), SIGKILL);
    }
    MPI_Recv(&nothing, 1, MPI_INT, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
    MPI_Comm parents, children;
    MPI_Init(&argc, &argv);
    MPI_Comm_get_parent(&parents);
    int rank = comm_rank(MPI_COMM_WORLD), nothing = 0;
    if (parents != MPI_COMM_NULL)
        be_child(rank);
    MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE);
    MPI_Recv(&nothing, 1, MPI_INT, 0, 4, children, MPI_STATUS_IGNORE);
    MPI_Finalize();
    return 0;
}
