/*
 * Small and large messages in turn, from the same two call sites: the small ones are eager and hidden, the large ones stand
 * still until both sides wait. An answer for the call site as a whole would be an average of the two; the answer is in
 * the sizes.
 *
 *   overlap_mixed [LARGE [ITERATIONS]]
 *
 * Prints in nanoseconds, for each iteration and each size, how long the receiver waited and computed.
 */
#include "work.h"

enum { SMALL = 256, REHEARSALS = 10, MAX_ITERATIONS = 100 };

static char *buffer;

SITE void post(int bytes, MPI_Request *request)
{
    if (comm_rank(MPI_COMM_WORLD) == 0) {
        MPI_Recv(NULL, 0, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Isend(buffer, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD, request);
    } else {
        MPI_Irecv(buffer, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, request);
        MPI_Send(NULL, 0, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
    }
}

SITE void complete(MPI_Request *request)
{
    MPI_Wait(request, MPI_STATUS_IGNORE);
}

/* The receiver posts before the sender does; both compute for `window_ns`, wait. */
static void send_one(int message, int bytes, int64_t window_ns, int64_t *computed, int64_t *waited)
{
    MPI_Request request;
    memset(buffer, comm_rank(MPI_COMM_WORLD) == 0 ? value_of(message) : 0, (size_t)bytes);
    MPI_Barrier(MPI_COMM_WORLD);
    post(bytes, &request);
    *computed = compute(window_ns);
    int64_t begin = now_ns();
    complete(&request);
    *waited = now_ns() - begin;
    CHECK(is_message(buffer, (size_t)bytes, message));
}

int main(int argc, char **argv)
{
    int64_t computed[2][MAX_ITERATIONS], waited[2][MAX_ITERATIONS];
    int rank = start(&argc, &argv, 2), message = 0;
    int large = argc > 1 ? atoi(argv[1]) : 16 << 20;
    int iterations = argc > 2 ? atoi(argv[2]) : 20;
    CHECK(iterations > 0 && iterations <= MAX_ITERATIONS);
    buffer = make_buffer((size_t)large);
    calibrate_work();
    rehearse(buffer, SMALL, REHEARSALS, waited[0]);
    int64_t window_ns = 2 * rehearse(buffer, (size_t)large, REHEARSALS, waited[1]);
    for (int i = 0; i < iterations; i++) {
        send_one(message++, SMALL, window_ns, &computed[0][i], &waited[0][i]);
        send_one(message++, large, window_ns, &computed[1][i], &waited[1][i]);
    }
    if (rank == 1) {
        print_values("small_computed", computed[0], iterations);
        print_values("small_waited", waited[0], iterations);
        print_values("large_computed", computed[1], iterations);
        print_values("large_waited", waited[1], iterations);
    }
    free(buffer);
    MPI_Finalize();
    return 0;
}
