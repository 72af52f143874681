/* Programs that hang in collectives. */
#include "hang.h"

SITE void reduces_all(void)
{
    int sum, one = 1;
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}

/* Rank 0 has the barrier before the reduction, the others behind it. Three ranks. */
SITE void order_swapped(void)
{
    here();
    if (rank == 0) {
        MPI_Barrier(MPI_COMM_WORLD);
        reduces_all();
    } else {
        reduces_all();
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

/* Each rank gathers to itself: both wait for the other's part. */
SITE void different_root(void)
{
    here();
    MPI_Gather(to_others, SMALL, MPI_BYTE, from_others, SMALL, MPI_BYTE, rank, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Ranks 0 and 1 scatter from rank 0, rank 2 waits for its part from rank 1. Three ranks. */
SITE void scatter_from_another(void)
{
    here();
    MPI_Scatter(to_others, LARGE / 4, MPI_BYTE, from_others, LARGE / 4, MPI_BYTE, rank == 2 ? 1 : 0, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Rank 0 broadcasts what the others think is a reduction. Three ranks. */
SITE void bcast_and_reduce(void)
{
    here();
    if (rank == 0)
        MPI_Bcast(to_others, LARGE, MPI_BYTE, 0, MPI_COMM_WORLD);
    else
        MPI_Reduce(to_others, from_others, LARGE, MPI_BYTE, MPI_BOR, 0, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Rank 2 does one step less and is done; the others reduce once more. Three ranks. */
SITE void leaves_the_loop_early(void)
{
    int steps = rank == 2 ? 4 : 5;
    for (int step = 0; step < steps; step++) {
        if (step == 4)
            here();
        reduces_all();
    }
    if (rank == 2)
        here();
}

/* Rank 2 does one step less and goes on to what comes behind the loop. Three ranks. */
SITE void goes_on_early(void)
{
    int steps = rank == 2 ? 4 : 5;
    for (int step = 0; step < steps; step++) {
        if (step == 4)
            here();
        reduces_all();
    }
    if (rank == 2)
        here();
    MPI_Gather(to_others, LARGE / 4, MPI_BYTE, from_others, LARGE / 4, MPI_BYTE, 0, MPI_COMM_WORLD);
}

/* Barriers of two communicators with the same members, in one order and in the other. */
SITE void communicators_crossed(void)
{
    MPI_Comm other;
    MPI_Comm_dup(MPI_COMM_WORLD, &other);
    MPI_Comm_set_name(other, "other");
    here();
    MPI_Barrier(rank == 0 ? MPI_COMM_WORLD : other);
    MPI_Barrier(rank == 0 ? other : MPI_COMM_WORLD);
}

/* Rows and columns of four ranks: 0 and 3 begin with their rows, 1 and 2 with their columns. Four ranks. */
SITE void rows_and_columns(void)
{
    MPI_Comm row, column;
    MPI_Comm_split(MPI_COMM_WORLD, rank / 2, rank, &row);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &column);
    here();
    int row_first = rank == 0 || rank == 3;
    MPI_Barrier(row_first ? row : column);
    MPI_Barrier(row_first ? column : row);
}

/* The barrier waits for rank 1, which waits for a message that rank 0 sends behind the barrier. */
SITE void receive_before_barrier(void)
{
    here();
    if (rank == 1)
        receive_small(0, TAG, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        send_small(1, TAG, MPI_COMM_WORLD);
}

/* Rank 2 takes no part in making a communicator: it waits for a message of rank 0. Three ranks. */
SITE void split_without_one(void)
{
    MPI_Comm part;
    here();
    if (rank == 2)
        receive_small(0, TAG, MPI_COMM_WORLD);
    MPI_Comm_split(MPI_COMM_WORLD, rank / 2, rank, &part);
    if (rank == 0)
        send_small(2, TAG, MPI_COMM_WORLD);
}

/* Ranks 0 and 1 duplicate the world, rank 2 is in a reduction already. Three ranks. */
SITE void dup_and_reduce(void)
{
    MPI_Comm other;
    here();
    if (rank != 2)
        MPI_Comm_dup(MPI_COMM_WORLD, &other);
    reduces_all();
}

/* Rank 1 finalizes MPI while rank 0 waits for its message. */
SITE void finalizes_early(void)
{
    here();
    if (rank == 0)
        receive_small(1, TAG, MPI_COMM_WORLD);
}

/* Rank 3 does not come to the barrier of both sides: it waits for what nobody sends. Four ranks. */
SITE void barrier_between_without_one(void)
{
    MPI_Comm between = between_sides();
    here();
    if (rank == 3)
        receive_small(1, TAG, between);
    MPI_Barrier(between);
}

/* One side has a barrier where the other reduces. Four ranks. */
SITE void sides_differ(void)
{
    MPI_Comm between = between_sides();
    int sum = 0, one = 1;
    here();
    if (rank < 2)
        MPI_Barrier(between);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, between);
    MPI_Barrier(between);
}

/* Ranks 2 and 3 want what rank 1 of the other side broadcasts, which thinks that rank 0 does. Four ranks. */
SITE void other_root_between(void)
{
    MPI_Comm between = between_sides();
    here();
    int root = rank >= 2 ? 1 : rank == 0 ? MPI_ROOT : MPI_PROC_NULL;
    MPI_Bcast(rank == 0 ? to_others : from_others, LARGE, MPI_BYTE, root, between);
    MPI_Barrier(between);
}

int main(int argc, char **argv)
{
    static const struct program programs[] = {PROGRAM(order_swapped), PROGRAM(different_root), PROGRAM(scatter_from_another),
        PROGRAM(bcast_and_reduce), PROGRAM(leaves_the_loop_early), PROGRAM(goes_on_early), PROGRAM(communicators_crossed),
        PROGRAM(rows_and_columns), PROGRAM(receive_before_barrier), PROGRAM(split_without_one), PROGRAM(dup_and_reduce),
        PROGRAM(finalizes_early), PROGRAM(barrier_between_without_one), PROGRAM(sides_differ), PROGRAM(other_root_between)};
    return RUN_PROGRAM(argc, argv, MPI_THREAD_SINGLE, programs);
}
