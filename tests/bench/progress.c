/*
 * What progress during a computation is worth: two ranks, messages of one size, and a fixed amount of work beside them.
 *
 *   progress calibrate MS                                        prints how many rounds of work take so long
 *   progress exchange|late BYTES ROUNDS ITERATIONS TESTS single|multiple
 *
 * exchange: each rank posts a receive and a send, computes, and waits for both. late: rank 0 sends, waits for that, and
 * computes then; rank 1 posts the receive, computes, and waits, so that the sender meets a receiver who is busy.
 *
 * The work is ROUNDS of a loop, so that runs that are to be compared all do the same, whatever else the processors do. TESTS
 * calls of MPI_Testall are spread over it: what a developer would write who knows of the problem. `multiple` asks for
 * MPI_THREAD_MULTIPLE, without which MPICH does not start its own progress thread.
 *
 * Rank 0 prints, in nanoseconds, medians over iterations of what the slower rank took to post, to compute and to wait (late:
 * the sender to post and to wait), the sum of whole iterations, and the time inside MPI of iterations without computation:
 * what the messages take alone. Contents are checked between iterations; the clock stands still then.
 */
#include "../apps/work.h"

enum { POST, COMPUTE, WAIT, WHOLE, TIMES };
enum { WARM = 2 };

struct kernel {
    int late, bytes, tests;
    int64_t rounds;
    char *out, *in;
};

static int me;

static int post(const struct kernel *k, MPI_Request requests[2])
{
    int count = 0;
    if (!k->late || me == 1)
        MPI_Irecv(k->in, k->bytes, MPI_BYTE, 1 - me, 0, MPI_COMM_WORLD, &requests[count++]);
    if (!k->late || me == 0)
        MPI_Isend(k->out, k->bytes, MPI_BYTE, 1 - me, 0, MPI_COMM_WORLD, &requests[count++]);
    return count;
}

static void compute_and_test(const struct kernel *k, MPI_Request requests[2], int count)
{
    for (int i = 0; i < k->tests; i++) {
        int done;
        do_rounds(k->rounds / k->tests);
        MPI_Testall(count, requests, &done, MPI_STATUSES_IGNORE);
    }
    do_rounds(k->tests ? k->rounds % k->tests : k->rounds);
}

/* One iteration; what it took this rank. */
static void iterate(const struct kernel *k, int64_t took[TIMES])
{
    static int message;
    int sender_of_late = k->late && me == 0;
    MPI_Request requests[2];
    memset(k->out, value_of(++message), (size_t)k->bytes);
    MPI_Barrier(MPI_COMM_WORLD);

    int64_t begin = now_ns();
    int count = post(k, requests);
    int64_t posted = now_ns();
    if (!sender_of_late)
        compute_and_test(k, requests, count);
    int64_t computed = now_ns();
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
    int64_t waited = now_ns();
    if (sender_of_late)
        do_rounds(k->rounds);
    int64_t end = now_ns();

    CHECK(sender_of_late || is_message(k->in, (size_t)k->bytes, message));
    int receiver_of_late = k->late && me == 1; /* the question is what the sender waits */
    took[POST] = receiver_of_late ? 0 : posted - begin;
    took[WAIT] = receiver_of_late ? 0 : waited - computed;
    took[COMPUTE] = (computed - posted) + (end - waited);
    took[WHOLE] = end - begin;
}

/* Iterations one after the other; of each, on rank 0, the times of the rank that took longer. */
static int64_t (*measure(const struct kernel *k, int iterations))[TIMES]
{
    int64_t(*took)[TIMES] = calloc((size_t)iterations + WARM, sizeof *took);
    int64_t(*longer)[TIMES] = calloc((size_t)iterations, sizeof *longer);
    CHECK(took && longer);
    for (int i = 0; i < iterations + WARM; i++)
        iterate(k, took[i]);
    MPI_Reduce(took + WARM, longer, iterations * TIMES, MPI_INT64_T, MPI_MAX, 0, MPI_COMM_WORLD);
    free(took);
    return longer;
}

static int64_t median_time(int64_t (*took)[TIMES], int iterations, int which)
{
    int64_t *values = calloc((size_t)iterations, sizeof *values);
    CHECK(values);
    for (int i = 0; i < iterations; i++)
        values[i] = took[i][which];
    qsort(values, (size_t)iterations, sizeof *values, compare_ns);
    int64_t middle = values[iterations / 2];
    free(values);
    return middle;
}

static void run(struct kernel *k, int iterations)
{
    k->out = make_buffer((size_t)k->bytes);
    k->in = make_buffer((size_t)k->bytes);
    struct kernel alone = *k;
    alone.rounds = alone.tests = 0;
    int64_t(*reference)[TIMES] = measure(&alone, iterations);
    int64_t(*took)[TIMES] = measure(k, iterations);
    int64_t total = 0;
    for (int i = 0; i < iterations; i++) {
        reference[i][WHOLE] = reference[i][POST] + reference[i][WAIT];
        total += took[i][WHOLE];
    }
    if (me == 0)
        printf("alone %lld post %lld compute %lld wait %lld total %lld\n", (long long)median_time(reference, iterations, WHOLE),
               (long long)median_time(took, iterations, POST), (long long)median_time(took, iterations, COMPUTE),
               (long long)median_time(took, iterations, WAIT), (long long)total);
    free(reference);
    free(took);
    free(k->out);
    free(k->in);
}

int main(int argc, char **argv)
{
    int level, multiple = argc == 7 && strcmp(argv[6], "multiple") == 0;
    MPI_Init_thread(&argc, &argv, multiple ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &level);
    me = comm_rank(MPI_COMM_WORLD);
    CHECK(comm_size(MPI_COMM_WORLD) == 2);
    CHECK(argc == 3 || argc == 7);
    if (argc == 3) {
        calibrate_work();
        if (me == 0)
            printf("%lld\n", (long long)(atof(argv[2]) * 1e6 * rounds_per_ns));
    } else {
        struct kernel k = {.late = strcmp(argv[1], "late") == 0, .bytes = atoi(argv[2]), .rounds = atoll(argv[3]), .tests = atoi(argv[5])};
        run(&k, atoi(argv[4]));
    }
    MPI_Finalize();
    return 0;
}
