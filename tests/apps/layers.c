/*
 * Two ranks exchange messages through a layer whose functions only pass on to one MPI call, as those of many libraries do, and
 * a layer on top of it; and by a function that does more.
 *
 *   layers HALOS TRANSPOSES
 *
 * Rank 0 prints a sum over all that it received.
 */
#include "work.h"

enum { BYTES = 128 * 1024 };

static int64_t sum;

/* --- the layer ---------------------------------------------------------------------------------------------------------- */

SITE int layer_irecv(char *buffer, int from, MPI_Request *request)
{
    return MPI_Irecv(buffer, BYTES, MPI_BYTE, from, 0, MPI_COMM_WORLD, request);
}

SITE int layer_isend(const char *buffer, int to, MPI_Request *request)
{
    return MPI_Isend(buffer, BYTES, MPI_BYTE, to, 0, MPI_COMM_WORLD, request);
}

SITE int layer_waitall(int count, MPI_Request *requests)
{
    return MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
}

/* On top of it. */
SITE void finish(MPI_Request requests[2])
{
    CHECK(layer_waitall(2, requests) == MPI_SUCCESS);
}

/* --- what uses it ------------------------------------------------------------------------------------------------------- */

SITE void halo(char *out, char *in, int other, int i)
{
    MPI_Request requests[2];
    memset(out, value_of(i), BYTES);
    layer_irecv(in, other, &requests[0]);
    layer_isend(out, other, &requests[1]);
    compute(200000);
    finish(requests);
    sum += in[0] + 3 * in[BYTES - 1];
}

SITE void transpose(char *out, char *in, int other, int i)
{
    MPI_Request requests[2];
    memset(out, value_of(i + 1), BYTES);
    layer_irecv(in, other, &requests[0]);
    layer_isend(out, other, &requests[1]);
    compute(200000);
    finish(requests);
    sum += 5 * in[0] + 7 * in[BYTES - 1];
}

/* No layer: it posts and waits. */
SITE void exchange(char *out, char *in, int other, int i)
{
    MPI_Request requests[2];
    memset(out, value_of(i), 8);
    MPI_Irecv(in, 8, MPI_BYTE, other, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(out, 8, MPI_BYTE, other, 1, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    sum += in[7];
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    CHECK(argc == 3 && comm_size(MPI_COMM_WORLD) == 2);
    int other = 1 - comm_rank(MPI_COMM_WORLD), halos = atoi(argv[1]), transposes = atoi(argv[2]);
    char *out = make_buffer(BYTES), *in = make_buffer(BYTES);
    calibrate_work();
    exchange(out, in, other, 0);
    for (int i = 0; i < halos; i++)
        halo(out, in, other, i);
    exchange(out, in, other, 1);
    for (int i = 0; i < transposes; i++)
        transpose(out, in, other, i);
    if (comm_rank(MPI_COMM_WORLD) == 0)
        printf("sum %lld\n", (long long)sum);
    MPI_Finalize();
    free(out);
    free(in);
    return 0;
}
