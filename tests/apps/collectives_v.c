/*
 * The collectives whose parts differ, on three ranks: rank r gives or gets r + 1 elements; root 2.
 * Rows: bytes are what this rank contributes: its own part where it gives one, the sum of all parts where it serves all.
 */
#include "check.h"

enum { RANKS = 3, ROOT = 2, TOTAL = 6 };

static int rank;
static const int counts[RANKS] = {1, 2, 3}, offsets[RANKS] = {0, 1, 3};

static int element(int from, int i)
{
    return 100 * from + i;
}

static void fill_ints(int *data, int count)
{
    for (int i = 0; i < count; i++)
        data[i] = element(rank, i);
}

static void check_parts(const int *in)
{
    for (int from = 0; from < RANKS; from++)
        for (int i = 0; i < counts[from]; i++)
            CHECK(in[offsets[from] + i] == element(from, i));
}

static void gathering(void)
{
    int out[TOTAL], in[TOTAL];
    fill_ints(out, TOTAL);
    MPI_Gatherv(out, counts[rank], MPI_INT, in, counts, offsets, MPI_INT, ROOT, MPI_COMM_WORLD);
    if (rank == ROOT)
        check_parts(in);
    MPI_Scatterv(out, counts, offsets, MPI_INT, in, counts[rank], MPI_INT, ROOT, MPI_COMM_WORLD);
    for (int i = 0; i < counts[rank]; i++)
        CHECK(in[i] == element(ROOT, offsets[rank] + i));
    MPI_Allgatherv(out, counts[rank], MPI_INT, in, counts, offsets, MPI_INT, MPI_COMM_WORLD);
    check_parts(in);
}

/* Rank r sends counts[k] elements to rank k, so it gets counts[r] from everybody. */
static void all_to_all(void)
{
    int out[TOTAL], in[RANKS * RANKS], receive_counts[RANKS], receive_offsets[RANKS];
    int byte_offsets[RANKS], receive_byte_offsets[RANKS];
    MPI_Datatype types[RANKS] = {MPI_INT, MPI_INT, MPI_INT};
    fill_ints(out, TOTAL);
    for (int i = 0; i < RANKS; i++) {
        receive_counts[i] = counts[rank];
        receive_offsets[i] = i * RANKS;
        byte_offsets[i] = offsets[i] * (int)sizeof(int);
        receive_byte_offsets[i] = receive_offsets[i] * (int)sizeof(int);
    }
    MPI_Alltoallv(out, counts, offsets, MPI_INT, in, receive_counts, receive_offsets, MPI_INT, MPI_COMM_WORLD);
    for (int from = 0; from < RANKS; from++)
        CHECK(in[from * RANKS] == element(from, offsets[rank]));
    memset(in, 0, sizeof in);
    MPI_Alltoallw(out, counts, byte_offsets, types, in, receive_counts, receive_byte_offsets, types, MPI_COMM_WORLD);
    for (int from = 0; from < RANKS; from++)
        CHECK(in[from * RANKS] == element(from, offsets[rank]));
}

int main(int argc, char **argv)
{
    rank = start(&argc, &argv, RANKS);
    gathering();
    all_to_all();
    if (rank == 0)
        puts("one, two, three");
    MPI_Finalize();
    return 0;
}
