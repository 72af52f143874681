/*
 * Every blocking collective with equal parts, on three ranks, root 1.
 * Rows: bytes are what the rank contributes (schema/README.md), the peer is the root where there is one.
 */
#include "check.h"

enum { RANKS = 3, ROOT = 1, COUNT = 5 };

static int rank;

/* Element `i` of what rank `from` sends. */
static int element(int from, int i)
{
    return 100 * from + i;
}

static void fill_ints(int *data, int count)
{
    for (int i = 0; i < count; i++)
        data[i] = element(rank, i);
}

static void moving(void)
{
    int out[RANKS * COUNT], in[RANKS * COUNT];
    fill_ints(out, RANKS * COUNT);
    MPI_Bcast(out, COUNT, MPI_INT, ROOT, MPI_COMM_WORLD);
    CHECK(out[COUNT - 1] == element(ROOT, COUNT - 1));
    fill_ints(out, RANKS * COUNT);
    MPI_Gather(out, COUNT, MPI_INT, in, COUNT, MPI_INT, ROOT, MPI_COMM_WORLD);
    for (int i = 0; rank == ROOT && i < RANKS * COUNT; i++)
        CHECK(in[i] == element(i / COUNT, i % COUNT));
    MPI_Scatter(out, COUNT, MPI_INT, in, COUNT, MPI_INT, ROOT, MPI_COMM_WORLD);
    for (int i = 0; i < COUNT; i++)
        CHECK(in[i] == element(ROOT, rank * COUNT + i));
    MPI_Allgather(out, COUNT, MPI_INT, in, COUNT, MPI_INT, MPI_COMM_WORLD);
    for (int i = 0; i < RANKS * COUNT; i++)
        CHECK(in[i] == element(i / COUNT, i % COUNT));
    MPI_Alltoall(out, COUNT, MPI_INT, in, COUNT, MPI_INT, MPI_COMM_WORLD);
    for (int i = 0; i < RANKS * COUNT; i++)
        CHECK(in[i] == element(i / COUNT, rank * COUNT + i % COUNT));
}

/* Sum of element(from, i) over the ranks below `end`. */
static int sum_below(int end, int i)
{
    int sum = 0;
    for (int from = 0; from < end; from++)
        sum += element(from, i);
    return sum;
}

static void reducing(void)
{
    int out[RANKS * COUNT], in[RANKS * COUNT], counts[RANKS] = {1, 2, 3};
    fill_ints(out, RANKS * COUNT);
    MPI_Reduce(out, in, COUNT, MPI_INT, MPI_SUM, ROOT, MPI_COMM_WORLD);
    CHECK(rank != ROOT || in[2] == sum_below(RANKS, 2));
    MPI_Allreduce(out, in, COUNT, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(in[3] == sum_below(RANKS, 3));
    MPI_Reduce_scatter(out, in, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(in[0] == sum_below(RANKS, rank == 0 ? 0 : rank == 1 ? 1 : 3));
    MPI_Reduce_scatter_block(out, in, COUNT, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(in[4] == sum_below(RANKS, rank * COUNT + 4));
    MPI_Scan(out, in, COUNT, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(in[1] == sum_below(rank + 1, 1));
    MPI_Exscan(out, in, COUNT, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(rank == 0 || in[1] == sum_below(rank, 1));
}

int main(int argc, char **argv)
{
    rank = start(&argc, &argv, RANKS);
    MPI_Barrier(MPI_COMM_WORLD);
    moving();
    reducing();
    if (rank == 0)
        puts("all of them");
    MPI_Finalize();
    return 0;
}
