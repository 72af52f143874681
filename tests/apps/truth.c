/*
 * Messages that are under way together beside a computation, between two ranks. It prints what a step takes, nanoseconds: the mean
 * of its steps on both ranks.
 *
 *   truth MESSAGES BYTES equal|mixed one|both COMPUTE_NS STEPS [tested]
 *
 * mixed: each message has half the bytes of the one before it, the sixth all again. one: rank 0 sends. tested: MPI_Testall every
 * 50 us of the computation; what a step takes less then is what could have been overlapped.
 */
#include "work.h"

enum { MOST_MESSAGES = 8, SIZES = 5, BLOCK_NS = 50000 };

static int rank, messages, is_tested;
static int64_t compute_ns;
static int bytes[MOST_MESSAGES];
static char *out[MOST_MESSAGES], *in[MOST_MESSAGES];
static MPI_Request requests[2 * MOST_MESSAGES];

SITE int post(int sends, int receives)
{
    int count = 0;
    for (int i = 0; receives && i < messages; i++)
        MPI_Irecv(in[i], bytes[i], MPI_BYTE, 1 - rank, i, MPI_COMM_WORLD, &requests[count++]);
    for (int i = 0; sends && i < messages; i++)
        MPI_Isend(out[i], bytes[i], MPI_BYTE, 1 - rank, i, MPI_COMM_WORLD, &requests[count++]);
    return count;
}

SITE void work(int count)
{
    int all = 0;
    if (!is_tested) {
        compute(compute_ns);
        return;
    }
    for (int64_t done = 0; done < compute_ns; done += BLOCK_NS) {
        compute(BLOCK_NS);
        if (!all)
            MPI_Testall(count, requests, &all, MPI_STATUSES_IGNORE);
    }
}

SITE void step(int is_one)
{
    int count = post(!is_one || rank == 0, !is_one || rank == 1);
    work(count);
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
}

int main(int argc, char **argv)
{
    int64_t took, sum;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    CHECK(argc >= 7);
    messages = atoi(argv[1]);
    compute_ns = atoll(argv[5]);
    int steps = atoi(argv[6]), is_mixed = is_asked(argc, argv, "mixed"), is_one = is_asked(argc, argv, "one");
    is_tested = is_asked(argc, argv, "tested");
    CHECK(messages >= 1 && messages <= MOST_MESSAGES && steps >= 1);
    for (int i = 0; i < messages; i++) {
        bytes[i] = atoi(argv[2]) >> (is_mixed ? i % SIZES : 0);
        out[i] = make_buffer((size_t)bytes[i]);
        in[i] = make_buffer((size_t)bytes[i]);
    }
    calibrate_work();
    int64_t begin = now_ns();
    for (int i = 0; i < steps; i++)
        step(is_one);
    took = now_ns() - begin;
    MPI_Reduce(&took, &sum, 1, MPI_INT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%lld\n", (long long)(sum / steps / 2));
    MPI_Finalize();
    return 0;
}
