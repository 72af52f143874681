/*
 * An exchange in four directions as LULESH has it: receives are posted early, each on a line of its own; sends are posted and waited
 * for; then each receive is waited for and worked on, one after the other.
 *
 *   directions BYTES ITERATIONS
 *
 * Any number of ranks; the neighbours lie in a ring, at distances of 1 and 2. Rank 0 prints a sum over all that it received.
 */
#include "work.h"

enum { DIRECTIONS = 4 };

static int rank, ranks, bytes;
static char *out[DIRECTIONS], *in[DIRECTIONS];
static MPI_Request receives[DIRECTIONS], sends[DIRECTIONS];

static int neighbour(int distance)
{
    return (rank + distance + ranks) % ranks;
}

SITE void post_receives(void)
{
    MPI_Irecv(in[0], bytes, MPI_BYTE, neighbour(-1), 0, MPI_COMM_WORLD, &receives[0]);
    MPI_Irecv(in[1], bytes, MPI_BYTE, neighbour(1), 1, MPI_COMM_WORLD, &receives[1]);
    MPI_Irecv(in[2], bytes, MPI_BYTE, neighbour(-2), 2, MPI_COMM_WORLD, &receives[2]);
    MPI_Irecv(in[3], bytes, MPI_BYTE, neighbour(2), 3, MPI_COMM_WORLD, &receives[3]);
}

SITE void send_all(void)
{
    MPI_Isend(out[0], bytes, MPI_BYTE, neighbour(1), 0, MPI_COMM_WORLD, &sends[0]);
    MPI_Isend(out[1], bytes, MPI_BYTE, neighbour(-1), 1, MPI_COMM_WORLD, &sends[1]);
    MPI_Isend(out[2], bytes, MPI_BYTE, neighbour(2), 2, MPI_COMM_WORLD, &sends[2]);
    MPI_Isend(out[3], bytes, MPI_BYTE, neighbour(-2), 3, MPI_COMM_WORLD, &sends[3]);
    MPI_Waitall(DIRECTIONS, sends, MPI_STATUSES_IGNORE);
}

SITE int64_t unpack(const char *from)
{
    compute(500000);
    return from[0] + 3 * from[bytes - 1];
}

SITE int64_t take_all(void)
{
    int64_t sum = 0;
    MPI_Wait(&receives[0], MPI_STATUS_IGNORE);
    sum += unpack(in[0]);
    MPI_Wait(&receives[1], MPI_STATUS_IGNORE);
    sum += unpack(in[1]);
    MPI_Wait(&receives[2], MPI_STATUS_IGNORE);
    sum += unpack(in[2]);
    MPI_Wait(&receives[3], MPI_STATUS_IGNORE);
    sum += unpack(in[3]);
    return sum;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    CHECK(argc == 3);
    rank = comm_rank(MPI_COMM_WORLD), ranks = comm_size(MPI_COMM_WORLD), bytes = atoi(argv[1]);
    int iterations = atoi(argv[2]);
    int64_t sum = 0;
    for (int direction = 0; direction < DIRECTIONS; direction++) {
        out[direction] = make_buffer((size_t)bytes);
        in[direction] = make_buffer((size_t)bytes);
    }
    calibrate_work();
    for (int i = 0; i < iterations; i++) {
        post_receives();
        for (int direction = 0; direction < DIRECTIONS; direction++)
            memset(out[direction], value_of(i + direction), (size_t)bytes);
        compute(1000000 * (1 + (rank + i) % 2));
        send_all();
        sum += take_all();
    }
    if (rank == 0)
        printf("sum %lld\n", (long long)sum);
    MPI_Finalize();
    for (int direction = 0; direction < DIRECTIONS; direction++) {
        free(out[direction]);
        free(in[direction]);
    }
    return 0;
}
