/*
 * Eight messages each way between two ranks, one window of computation for all of them, one MPI_Waitall.
 *
 *   overlap_waitall [BYTES [ITERATIONS]]
 *
 * However many requests it completes, what is exposed in an iteration is the MPI_Waitall, once. Prints in nanoseconds for
 * each iteration of each rank how long that took, and how much was computed before.
 */
#include "work.h"

enum { MESSAGES = 8, REHEARSALS = 10, WARM_UP = 3, MAX_ITERATIONS = 100 };

static int bytes;
static char *in[MESSAGES], *out[MESSAGES];

SITE void post(MPI_Request requests[2 * MESSAGES])
{
    int peer = 1 - comm_rank(MPI_COMM_WORLD);
    for (int i = 0; i < MESSAGES; i++)
        MPI_Irecv(in[i], bytes, MPI_BYTE, peer, i, MPI_COMM_WORLD, &requests[i]);
    for (int i = 0; i < MESSAGES; i++)
        MPI_Isend(out[i], bytes, MPI_BYTE, peer, i, MPI_COMM_WORLD, &requests[MESSAGES + i]);
}

SITE void complete(MPI_Request requests[2 * MESSAGES])
{
    MPI_Waitall(2 * MESSAGES, requests, MPI_STATUSES_IGNORE);
}

/* Posts, computes for `window_ns`, waits: the time that each took. */
static void iterate(int iteration, int64_t window_ns, int64_t *computed, int64_t *waited)
{
    MPI_Request requests[2 * MESSAGES];
    int rank = comm_rank(MPI_COMM_WORLD);
    for (int i = 0; i < MESSAGES; i++)
        memset(out[i], value_of(iteration + i + rank), (size_t)bytes);
    MPI_Barrier(MPI_COMM_WORLD);
    post(requests);
    *computed = compute(window_ns);
    int64_t begin = now_ns();
    complete(requests);
    *waited = now_ns() - begin;
    for (int i = 0; i < MESSAGES; i++)
        CHECK(is_message(in[i], (size_t)bytes, iteration + i + 1 - rank));
}

static void print_ranks(const char *what, const int64_t *mine, int count)
{
    int64_t all[2 * MAX_ITERATIONS];
    MPI_Gather(mine, count, MPI_INT64_T, all, count, MPI_INT64_T, 0, MPI_COMM_WORLD);
    for (int rank = 0; rank < 2 && comm_rank(MPI_COMM_WORLD) == 0; rank++) {
        char name[32];
        snprintf(name, sizeof name, "%s_%d", what, rank);
        print_values(name, all + rank * count, count);
    }
}

int main(int argc, char **argv)
{
    int64_t computed[MAX_ITERATIONS], waited[MAX_ITERATIONS];
    start(&argc, &argv, 2);
    bytes = argc > 1 ? atoi(argv[1]) : 1 << 20;
    int iterations = argc > 2 ? atoi(argv[2]) : 20;
    CHECK(iterations > 0 && iterations <= MAX_ITERATIONS);
    for (int i = 0; i < MESSAGES; i++) {
        in[i] = make_buffer((size_t)bytes);
        out[i] = make_buffer((size_t)bytes);
    }
    calibrate_work();
    rehearse(in[0], (size_t)bytes, REHEARSALS, waited);
    for (int i = 0; i < WARM_UP; i++)
        iterate(i, 0, &computed[i], &waited[i]);
    int64_t window_ns = median(waited, WARM_UP);
    MPI_Bcast(&window_ns, 1, MPI_INT64_T, 0, MPI_COMM_WORLD);
    for (int i = 0; i < iterations; i++)
        iterate(WARM_UP + i, window_ns, &computed[i], &waited[i]);
    print_ranks("computed", computed, iterations);
    print_ranks("waited", waited, iterations);
    for (int i = 0; i < MESSAGES; i++) {
        free(in[i]);
        free(out[i]);
    }
    MPI_Finalize();
    return 0;
}
