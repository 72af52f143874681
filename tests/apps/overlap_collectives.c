/*
 * Non-blocking collectives on two ranks, after their blocking namesakes, which say what they take.
 *
 *   overlap_collectives at_once|window|late [BYTES [ITERATIONS]]
 *
 * at_once: waited for at once. window: with computation in between that takes twice as long as the namesake on the rank
 * that it takes longer, and half as long as the quickest, in turn. late: waited for at once while rank 1 is late by a known
 * amount of computation.
 *
 * Prints in nanoseconds, for each collective and rank: blocking, what the blocking namesake took; and for each iteration
 * computed, what was computed in the window, waited, what MPI_Wait took, and late, how much of that had passed when the
 * other rank posted.
 */
#include "work.h"

enum { REHEARSALS = 20, MAX_ITERATIONS = 100 };

static int bytes; /* in a buffer of one rank */
static char *in, *out;

struct collective {
    const char *name;
    void (*block)(void);
    void (*post)(MPI_Request *request);
};

static void bcast(void)
{
    MPI_Bcast(out, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
}

static void allreduce(void)
{
    MPI_Allreduce(out, in, bytes / 8, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
}

static void alltoall(void)
{
    MPI_Alltoall(out, bytes / 2, MPI_BYTE, in, bytes / 2, MPI_BYTE, MPI_COMM_WORLD);
}

SITE void ibcast(MPI_Request *request)
{
    MPI_Ibcast(out, bytes, MPI_BYTE, 0, MPI_COMM_WORLD, request);
}

SITE void iallreduce(MPI_Request *request)
{
    MPI_Iallreduce(out, in, bytes / 8, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD, request);
}

SITE void ialltoall(MPI_Request *request)
{
    MPI_Ialltoall(out, bytes / 2, MPI_BYTE, in, bytes / 2, MPI_BYTE, MPI_COMM_WORLD, request);
}

static const struct collective collectives[] = {
    {"bcast", bcast, ibcast}, {"allreduce", allreduce, iallreduce}, {"alltoall", alltoall, ialltoall}};

enum way { AT_ONCE, WINDOW, LATE };

struct times {
    int64_t post, computed, wait, waited;
};

/* Every value is the sum over ranks, or the root's, or the other rank's: the same on both. */
static void meet(int value)
{
    memset(out, value_of(value), (size_t)bytes);
    memset(in, 0, (size_t)bytes);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void check(const struct collective *collective, int value)
{
    int64_t one, sum;
    memcpy(&one, out, sizeof one);
    memcpy(&sum, in, sizeof sum);
    if (collective->block == allreduce)
        CHECK(sum == 2 * one && memcmp(in, in + 8, (size_t)bytes - 8) == 0);
    else
        CHECK(is_message(collective->block == bcast ? out : in, (size_t)bytes, value));
}

static void print_ranks(const char *name, const char *what, const int64_t *mine, int count)
{
    int64_t all[2 * MAX_ITERATIONS];
    MPI_Gather(mine, count, MPI_INT64_T, all, count, MPI_INT64_T, 0, MPI_COMM_WORLD);
    for (int rank = 0; rank < 2 && comm_rank(MPI_COMM_WORLD) == 0; rank++) {
        char line[64];
        snprintf(line, sizeof line, "%s_%s_%d", name, what, rank);
        print_values(line, all + rank * count, count);
    }
}

/* What a blocking call takes on the rank that it takes longer. */
struct pace {
    int64_t quickest, typical;
};

static struct pace time_blocking(const struct collective *collective)
{
    int64_t took[REHEARSALS];
    for (int i = 0; i < REHEARSALS; i++) {
        meet(i);
        int64_t begin = now_ns();
        collective->block();
        took[i] = now_ns() - begin;
        check(collective, i);
    }
    print_ranks(collective->name, "blocking", took, REHEARSALS);
    /* a root's broadcast may be over sooner than the other's, or later: it waits until its data have been fetched */
    int64_t mine[2] = {took[0], median(took, REHEARSALS)}, longer[2];
    for (int i = 1; i < REHEARSALS; i++)
        mine[0] = took[i] < mine[0] ? took[i] : mine[0];
    MPI_Allreduce(mine, longer, 2, MPI_INT64_T, MPI_MAX, MPI_COMM_WORLD);
    return (struct pace){longer[0], longer[1]};
}

static struct times iterate(const struct collective *collective, enum way way, struct pace pace, int is_short)
{
    struct times times = {0, 0, 0, 0};
    MPI_Request request;
    if (way == LATE && comm_rank(MPI_COMM_WORLD) == 1)
        compute(4 * pace.typical + 5000000); /* more than what both ranks then wait for the transfer */
    times.post = now_ns();
    collective->post(&request);
    if (way == WINDOW)
        times.computed = compute(is_short ? pace.quickest / 2 : 2 * pace.typical);
    times.wait = now_ns();
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    times.waited = now_ns() - times.wait;
    return times;
}

static int64_t clamp(int64_t value, int64_t most)
{
    return value < 0 ? 0 : value > most ? most : value;
}

static void print_times(const char *name, const struct times *times, int count)
{
    int64_t posts[2 * MAX_ITERATIONS], mine[MAX_ITERATIONS], late[MAX_ITERATIONS], computed[MAX_ITERATIONS];
    int64_t waited[MAX_ITERATIONS];
    for (int i = 0; i < count; i++)
        mine[i] = times[i].post;
    MPI_Allgather(mine, count, MPI_INT64_T, posts, count, MPI_INT64_T, MPI_COMM_WORLD);
    for (int i = 0; i < count; i++) {
        int64_t other = posts[(1 - comm_rank(MPI_COMM_WORLD)) * count + i];
        late[i] = clamp(other - times[i].wait, times[i].waited);
        computed[i] = times[i].computed;
        waited[i] = times[i].waited;
    }
    print_ranks(name, "late", late, count);
    print_ranks(name, "computed", computed, count);
    print_ranks(name, "waited", waited, count);
}

static void measure(const struct collective *collective, enum way way, int iterations)
{
    struct times times[MAX_ITERATIONS];
    struct pace pace = time_blocking(collective);
    for (int i = 0; i < iterations; i++) {
        meet(i);
        times[i] = iterate(collective, way, pace, i % 2);
        check(collective, i);
    }
    print_times(collective->name, times, iterations);
}

static enum way find_way(const char *name)
{
    static const char *const names[] = {"at_once", "window", "late"};
    for (int way = AT_ONCE; way <= LATE; way++)
        if (strcmp(names[way], name) == 0)
            return (enum way)way;
    fprintf(stderr, "overlap_collectives: no way %s\n", name);
    MPI_Abort(MPI_COMM_WORLD, 2);
    return AT_ONCE;
}

int main(int argc, char **argv)
{
    start(&argc, &argv, 2);
    CHECK(argc > 1);
    enum way way = find_way(argv[1]);
    bytes = argc > 2 ? atoi(argv[2]) : 8 << 20;
    int iterations = argc > 3 ? atoi(argv[3]) : 20;
    CHECK(bytes % 16 == 0 && iterations > 0 && iterations <= MAX_ITERATIONS);
    in = make_buffer((size_t)bytes);
    out = make_buffer((size_t)bytes);
    calibrate_work();
    for (size_t i = 0; i < sizeof collectives / sizeof *collectives; i++)
        measure(&collectives[i], way, iterations);
    free(in);
    free(out);
    MPI_Finalize();
    return 0;
}
