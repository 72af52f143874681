/*
 * The 17 collectives of MPI, each with buffers of its own, on three ranks, root 1: posted by a macro POST(lower, Upper,
 * request, arguments...) of the program that includes this, which says in which form, and with count_t and displ_t.
 * Vectors have 1, 2 and 3 elements for ranks 0, 1 and 2.
 */
#include "check.h"

enum { RANKS = 3, ROOT = 1, COUNT = 5, ALL = RANKS * COUNT };
enum {
    BARRIER, BCAST, GATHER, GATHERV, SCATTER, SCATTERV, ALLGATHER, ALLGATHERV, ALLTOALL, ALLTOALLV, ALLTOALLW,
    REDUCE, ALLREDUCE, REDUCE_SCATTER, REDUCE_SCATTER_BLOCK, SCAN, EXSCAN, OPERATIONS
};

static int rank;
static int out[OPERATIONS][ALL], in[OPERATIONS][ALL];
static const count_t parts[RANKS] = {1, 2, 3};
static const displ_t starts[RANKS] = {0, 1, 3}, blocks[RANKS] = {0, COUNT, 2 * COUNT};
static const displ_t byte_starts[RANKS] = {0, 4, 12}, byte_blocks[RANKS] = {0, 4 * COUNT, 8 * COUNT};
static count_t own_parts[RANKS]; /* as much as this rank's part, from every rank; a request may need it until it ends */
static MPI_Datatype ints[RANKS];

/* Element `i` of what rank `from` sends in this round. */
static int element(int round, int from, int i)
{
    return 10000 * round + 100 * from + i;
}

static int sum_below(int round, int end, int i)
{
    int sum = 0;
    for (int from = 0; from < end; from++)
        sum += element(round, from, i);
    return sum;
}

static void fill_all(int round)
{
    for (int i = 0; i < RANKS; i++) {
        own_parts[i] = parts[rank];
        ints[i] = MPI_INT;
    }
    for (int operation = 0; operation < OPERATIONS; operation++)
        for (int i = 0; i < ALL; i++) {
            out[operation][i] = element(round, rank, i);
            in[operation][i] = -1;
        }
}

static void post_moving(MPI_Request *requests)
{
    POST(bcast, Bcast, &requests[BCAST], out[BCAST], COUNT, MPI_INT, ROOT);
    POST(gather, Gather, &requests[GATHER], out[GATHER], COUNT, MPI_INT, in[GATHER], COUNT, MPI_INT, ROOT);
    POST(gatherv, Gatherv, &requests[GATHERV], out[GATHERV], parts[rank], MPI_INT, in[GATHERV], parts, starts, MPI_INT, ROOT);
    POST(scatter, Scatter, &requests[SCATTER], out[SCATTER], COUNT, MPI_INT, in[SCATTER], COUNT, MPI_INT, ROOT);
    POST(scatterv, Scatterv, &requests[SCATTERV], out[SCATTERV], parts, starts, MPI_INT, in[SCATTERV], parts[rank], MPI_INT, ROOT);
    POST(allgather, Allgather, &requests[ALLGATHER], out[ALLGATHER], COUNT, MPI_INT, in[ALLGATHER], COUNT, MPI_INT);
    POST(allgatherv, Allgatherv, &requests[ALLGATHERV], out[ALLGATHERV], parts[rank], MPI_INT, in[ALLGATHERV], parts, starts, MPI_INT);
    POST(alltoall, Alltoall, &requests[ALLTOALL], out[ALLTOALL], COUNT, MPI_INT, in[ALLTOALL], COUNT, MPI_INT);
    POST(alltoallv, Alltoallv, &requests[ALLTOALLV], out[ALLTOALLV], parts, starts, MPI_INT, in[ALLTOALLV], own_parts, blocks, MPI_INT);
    POST(alltoallw, Alltoallw, &requests[ALLTOALLW], out[ALLTOALLW], parts, byte_starts, ints, in[ALLTOALLW], own_parts, byte_blocks, ints);
}

static void post_reducing(MPI_Request *requests)
{
    POST(reduce, Reduce, &requests[REDUCE], out[REDUCE], in[REDUCE], COUNT, MPI_INT, MPI_SUM, ROOT);
    POST(allreduce, Allreduce, &requests[ALLREDUCE], out[ALLREDUCE], in[ALLREDUCE], COUNT, MPI_INT, MPI_SUM);
    POST(reduce_scatter, Reduce_scatter, &requests[REDUCE_SCATTER], out[REDUCE_SCATTER], in[REDUCE_SCATTER], parts, MPI_INT, MPI_SUM);
    POST(reduce_scatter_block, Reduce_scatter_block, &requests[REDUCE_SCATTER_BLOCK], out[REDUCE_SCATTER_BLOCK], in[REDUCE_SCATTER_BLOCK], COUNT, MPI_INT, MPI_SUM);
    POST(scan, Scan, &requests[SCAN], out[SCAN], in[SCAN], COUNT, MPI_INT, MPI_SUM);
    POST(exscan, Exscan, &requests[EXSCAN], out[EXSCAN], in[EXSCAN], COUNT, MPI_INT, MPI_SUM);
}

/* MPICH 4.0's persistent gather goes through a buffer that it has freed. */
static void check_moving(int round, int gathered)
{
    for (int i = 0; i < COUNT; i++) {
        CHECK(out[BCAST][i] == element(round, ROOT, i));
        CHECK(in[SCATTER][i] == element(round, ROOT, rank * COUNT + i));
    }
    for (int i = 0; i < ALL; i++) {
        CHECK(rank != ROOT || !gathered || in[GATHER][i] == element(round, i / COUNT, i % COUNT));
        CHECK(in[ALLGATHER][i] == element(round, i / COUNT, i % COUNT));
        CHECK(in[ALLTOALL][i] == element(round, i / COUNT, rank * COUNT + i % COUNT));
    }
    for (int from = 0; from < RANKS; from++) {
        for (int i = 0; i < parts[from]; i++) {
            CHECK(rank != ROOT || in[GATHERV][starts[from] + i] == element(round, from, i));
            CHECK(in[ALLGATHERV][starts[from] + i] == element(round, from, i));
        }
        for (int i = 0; i < parts[rank]; i++) {
            CHECK(in[SCATTERV][i] == element(round, ROOT, starts[rank] + i));
            CHECK(in[ALLTOALLV][from * COUNT + i] == element(round, from, starts[rank] + i));
            CHECK(in[ALLTOALLW][from * COUNT + i] == element(round, from, starts[rank] + i));
        }
    }
}

static void check_reducing(int round)
{
    for (int i = 0; i < COUNT; i++) {
        CHECK(rank != ROOT || in[REDUCE][i] == sum_below(round, RANKS, i));
        CHECK(in[ALLREDUCE][i] == sum_below(round, RANKS, i));
        CHECK(in[REDUCE_SCATTER_BLOCK][i] == sum_below(round, RANKS, rank * COUNT + i));
        CHECK(in[SCAN][i] == sum_below(round, rank + 1, i));
        CHECK(rank == 0 || in[EXSCAN][i] == sum_below(round, rank, i));
    }
    for (int i = 0; i < parts[rank]; i++)
        CHECK(in[REDUCE_SCATTER][i] == sum_below(round, RANKS, starts[rank] + i));
}
