/*
 * Two ranks exchange messages with computation beside each exchange, and do something else from the middle on.
 *
 *   phases BYTES WORK_MS ITERATIONS [BYTES WORK_MS ITERATIONS]...
 *
 * Rank 0 prints how long each phase took, in milliseconds.
 */
#include "work.h"

static void phase(int bytes, int64_t work, int iterations)
{
    int other = 1 - comm_rank(MPI_COMM_WORLD);
    char *out = make_buffer((size_t)bytes), *in = make_buffer((size_t)bytes);
    MPI_Barrier(MPI_COMM_WORLD);
    int64_t begin = now_ns();
    for (int i = 0; i < iterations; i++) {
        MPI_Request requests[2];
        memset(out, value_of(i), (size_t)bytes);
        MPI_Irecv(in, bytes, MPI_BYTE, other, 0, MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(out, bytes, MPI_BYTE, other, 0, MPI_COMM_WORLD, &requests[1]);
        if (work)
            compute(work);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        CHECK(is_message(in, (size_t)bytes, i));
    }
    if (comm_rank(MPI_COMM_WORLD) == 0)
        printf("phase %lld\n", (long long)((now_ns() - begin) / 1000000));
    free(out);
    free(in);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    CHECK(argc > 1 && argc % 3 == 1 && comm_size(MPI_COMM_WORLD) == 2);
    calibrate_work();
    for (int i = 1; i + 2 < argc; i += 3)
        phase(atoi(argv[i]), (int64_t)(atof(argv[i + 1]) * 1e6), atoi(argv[i + 2]));
    MPI_Finalize();
    return 0;
}
