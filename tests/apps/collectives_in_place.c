/*
 * Collectives with MPI_IN_PLACE on three ranks, root 0: at the root only for the rooted ones, everywhere for the others.
 * The send arguments beside MPI_IN_PLACE are nonsense on purpose: MPI ignores them, and so must everybody else.
 * Rows: bytes come from the receive side, this rank's own part of it for the gathers.
 */
#include "check.h"

enum { RANKS = 3, ROOT = 0, COUNT = 4, TOTAL = RANKS * COUNT, NONSENSE = -12345 };

static int rank;
static const int counts[RANKS] = {1, 2, 3}, offsets[RANKS] = {0, 1, 3};

static void fill_ints(int *data, int first, int count)
{
    for (int i = 0; i < count; i++)
        data[first + i] = 100 * rank + i;
}

static void rooted(void)
{
    int data[TOTAL], part[COUNT];
    fill_ints(part, 0, COUNT);
    if (rank == ROOT) {
        fill_ints(data, 0, COUNT);
        MPI_Gather(MPI_IN_PLACE, NONSENSE, MPI_DATATYPE_NULL, data, COUNT, MPI_INT, ROOT, MPI_COMM_WORLD);
        CHECK(data[0] == 0 && data[2 * COUNT] == 200);
        MPI_Gatherv(MPI_IN_PLACE, NONSENSE, MPI_DATATYPE_NULL, data, counts, offsets, MPI_INT, ROOT, MPI_COMM_WORLD);
        CHECK(data[1] == 100 && data[3] == 200);
        MPI_Scatter(data, COUNT, MPI_INT, MPI_IN_PLACE, NONSENSE, MPI_DATATYPE_NULL, ROOT, MPI_COMM_WORLD);
        MPI_Scatterv(data, counts, offsets, MPI_INT, MPI_IN_PLACE, NONSENSE, MPI_DATATYPE_NULL, ROOT, MPI_COMM_WORLD);
        fill_ints(data, 0, COUNT);
        MPI_Reduce(MPI_IN_PLACE, data, COUNT, MPI_INT, MPI_SUM, ROOT, MPI_COMM_WORLD);
        CHECK(data[1] == 303);
    } else {
        MPI_Gather(part, COUNT, MPI_INT, NULL, NONSENSE, MPI_DATATYPE_NULL, ROOT, MPI_COMM_WORLD);
        MPI_Gatherv(part, counts[rank], MPI_INT, NULL, NULL, NULL, MPI_DATATYPE_NULL, ROOT, MPI_COMM_WORLD);
        MPI_Scatter(NULL, NONSENSE, MPI_DATATYPE_NULL, data, COUNT, MPI_INT, ROOT, MPI_COMM_WORLD);
        MPI_Scatterv(NULL, NULL, NULL, MPI_DATATYPE_NULL, data, counts[rank], MPI_INT, ROOT, MPI_COMM_WORLD);
        CHECK(data[0] == rank * 100);
        MPI_Reduce(part, NULL, COUNT, MPI_INT, MPI_SUM, ROOT, MPI_COMM_WORLD);
    }
}

static void gathering(void)
{
    int data[TOTAL];
    fill_ints(data, rank * COUNT, COUNT);
    MPI_Allgather(MPI_IN_PLACE, NONSENSE, MPI_DATATYPE_NULL, data, COUNT, MPI_INT, MPI_COMM_WORLD);
    CHECK(data[COUNT] == 100 && data[2 * COUNT] == 200);
    fill_ints(data, offsets[rank], counts[rank]);
    MPI_Allgatherv(MPI_IN_PLACE, NONSENSE, MPI_DATATYPE_NULL, data, counts, offsets, MPI_INT, MPI_COMM_WORLD);
    CHECK(data[1] == 100 && data[3] == 200);
    fill_ints(data, 0, TOTAL);
    MPI_Alltoall(MPI_IN_PLACE, NONSENSE, MPI_DATATYPE_NULL, data, COUNT, MPI_INT, MPI_COMM_WORLD);
    CHECK(data[2 * COUNT] == 200 + rank * COUNT);
    int twos[RANKS] = {2, 2, 2}, places[RANKS] = {0, 2, 4};
    fill_ints(data, 0, TOTAL);
    MPI_Alltoallv(MPI_IN_PLACE, NULL, NULL, MPI_DATATYPE_NULL, data, twos, places, MPI_INT, MPI_COMM_WORLD);
    CHECK(data[4] == 200 + rank * 2);
}

static void reducing(void)
{
    int data[TOTAL], parts[RANKS] = {1, 2, 3};
    fill_ints(data, 0, TOTAL);
    MPI_Allreduce(MPI_IN_PLACE, data, COUNT, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(data[1] == 303);
    fill_ints(data, 0, TOTAL);
    MPI_Reduce_scatter(MPI_IN_PLACE, data, parts, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(data[0] == 300 + 3 * offsets[rank]);
    fill_ints(data, 0, TOTAL);
    MPI_Reduce_scatter_block(MPI_IN_PLACE, data, COUNT, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(data[0] == 300 + 3 * rank * COUNT);
    fill_ints(data, 0, TOTAL);
    MPI_Scan(MPI_IN_PLACE, data, COUNT, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(data[0] == (rank == 2 ? 300 : rank * 100));
    fill_ints(data, 0, TOTAL);
    MPI_Exscan(MPI_IN_PLACE, data, COUNT, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(rank != 2 || data[0] == 100);
}

int main(int argc, char **argv)
{
    rank = start(&argc, &argv, RANKS);
    rooted();
    gathering();
    reducing();
    if (rank == 0)
        puts("in place");
    MPI_Finalize();
    return 0;
}
