/*
 * Two ranks exchange messages and compute the same amount beside each exchange: something to gain, where transfers stand
 * still meanwhile, and nothing where they do not.
 *
 *   gain BYTES WORK_MS ITERATIONS [ROUNDS]
 *
 * ROUNDS is how much work a millisecond is, so that several runs do the same; otherwise it is found out.
 *
 * Rank 0 prints means over iterations in nanoseconds: how long one takes, and how long it waits for its messages; and ROUNDS.
 */
#include "work.h"

SITE void post(char *out, char *in, int bytes, MPI_Request requests[2])
{
    int other = 1 - comm_rank(MPI_COMM_WORLD);
    MPI_Irecv(in, bytes, MPI_BYTE, other, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(out, bytes, MPI_BYTE, other, 0, MPI_COMM_WORLD, &requests[1]);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    CHECK((argc == 4 || argc == 5) && comm_size(MPI_COMM_WORLD) == 2);
    int bytes = atoi(argv[1]), iterations = atoi(argv[3]);
    int64_t work = (int64_t)(atof(argv[2]) * 1e6), waited = 0;
    char *out = make_buffer((size_t)bytes), *in = make_buffer((size_t)bytes);
    if (argc == 5)
        rounds_per_ns = atof(argv[4]) / 1e6;
    else
        calibrate_work();
    MPI_Barrier(MPI_COMM_WORLD);
    int64_t begin = now_ns();
    for (int i = 0; i < iterations; i++) {
        MPI_Request requests[2];
        memset(out, value_of(i), (size_t)bytes);
        post(out, in, bytes, requests);
        compute(work);
        int64_t wait = now_ns();
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        waited += now_ns() - wait;
        CHECK(is_message(in, (size_t)bytes, i));
    }
    if (comm_rank(MPI_COMM_WORLD) == 0)
        printf("iteration %lld waited %lld rounds %lld\n", (long long)((now_ns() - begin) / iterations),
               (long long)(waited / iterations), (long long)(rounds_per_ns * 1e6));
    MPI_Finalize();
    free(out);
    free(in);
    return 0;
}
