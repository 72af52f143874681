/*
 * Two processes spawn two more of the same program; each child sends its number to a parent, the parents answer with a
 * broadcast over the inter-communicator.
 * Rows: the spawn as a call; messages between the worlds, whose other side is no rank of the own world, so no peer.
 */
#include "check.h"

enum { CHILDREN = 2, TAG = 5 };

static void be_parent(const char *program)
{
    int rank = comm_rank(MPI_COMM_WORLD), number, answer = 7, codes[CHILDREN];
    MPI_Comm children;
    MPI_Comm_spawn(program, MPI_ARGV_NULL, CHILDREN, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children, codes);
    MPI_Recv(&number, 1, MPI_INT, rank, TAG, children, MPI_STATUS_IGNORE);
    CHECK(number == 100 + rank);
    MPI_Bcast(&answer, 1, MPI_INT, rank == 0 ? MPI_ROOT : MPI_PROC_NULL, children);
    MPI_Comm_disconnect(&children);
    if (rank == 0)
        puts("two children");
}

static void be_child(MPI_Comm parents)
{
    int rank = comm_rank(MPI_COMM_WORLD), number = 100 + rank, answer = 0;
    MPI_Send(&number, 1, MPI_INT, rank, TAG, parents);
    MPI_Bcast(&answer, 1, MPI_INT, 0, parents);
    CHECK(answer == 7);
    MPI_Comm_disconnect(&parents);
}

int main(int argc, char **argv)
{
    MPI_Comm parents;
    start(&argc, &argv, 2);
    MPI_Comm_get_parent(&parents);
    if (parents == MPI_COMM_NULL)
        be_parent(argv[0]);
    else
        be_child(parents);
    MPI_Finalize();
    return 0;
}
