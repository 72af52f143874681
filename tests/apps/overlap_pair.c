/*
 * One message an iteration from rank 0 to rank 1, in a situation whose overlap is known by construction.
 *
 *   overlap_pair SITUATION [BYTES [ITERATIONS]]
 *
 * Before that, messages of the same size with nothing to hide behind (rehearse): what a transfer takes. Where the receiver
 * is early, it has posted and is computing when the sender posts: it says so in a message of no bytes.
 *
 * Prints, in nanoseconds: transfer, of each rehearsed message from the post of the send to the end of the receive; and of
 * each iteration, counted from the post of the send, for both sides the post, its return, the begin of the wait and the
 * moment when the request was known to be complete, and how much was computed between the post and that.
 */
#include "work.h"

enum { REHEARSALS = 15, MAX_ITERATIONS = 100, SLICES = 64 };
enum { TOKEN = 1, MESSAGE };

/* Work: so many times what a transfer takes, and so many milliseconds on top. */
struct work {
    double transfers, ms;
};

struct side {
    struct work before; /* the post */
    struct work window; /* between post and wait */
    int tests;          /* whether the window has an MPI_Test after each of its SLICES */
};

static const struct situation {
    const char *name;
    int receiver_early;
    struct side sender, receiver;
} situations[] = {
    /* nothing to hide behind */
    {"exposed", 1, {{0, 0}, {0, 0}, 0}, {{0, 0}, {0, 0}, 0}},
    /* meant for a small message, which is there long before anybody waits for it */
    {"hidden", 1, {{0, 0}, {2, 5}, 0}, {{0, 0}, {2, 5}, 0}},
    {"receiver_late", 0, {{0, 0}, {0, 0}, 0}, {{2, 5}, {0, 0}, 0}},
    {"sender_late", 0, {{2, 5}, {0, 0}, 0}, {{0, 0}, {0, 0}, 0}},
    /* a large message whose two sides have posted, and which waits for them to come back into MPI */
    {"stalled", 1, {{0, 0}, {2, 0}, 0}, {{0, 0}, {2.2, 0}, 0}},
    {"half", 1, {{0, 0}, {0.5, 0}, 0}, {{0, 0}, {0.5, 0}, 0}},
    /* a sender that waits for a receiver who has posted and does not look */
    {"receiver_computes", 1, {{0, 0}, {0, 0}, 0}, {{0, 0}, {4, 0}, 0}},
    {"receiver_tests", 1, {{0, 0}, {0, 0}, 0}, {{0, 0}, {4, 0}, 1}},
    /* as stalled, but both sides look now and then */
    {"tested", 1, {{0, 0}, {2, 0}, 1}, {{0, 0}, {2.2, 0}, 1}},
};

struct moments {
    int64_t post, posted, wait, done, computed;
};

static size_t bytes;
static char *buffer;
static int64_t transfer_ns;

static int64_t work_ns(const struct work *work)
{
    return (int64_t)(work->transfers * (double)transfer_ns + work->ms * 1e6);
}

SITE void post(MPI_Request *request)
{
    if (comm_rank(MPI_COMM_WORLD) == 0)
        MPI_Isend(buffer, (int)bytes, MPI_BYTE, 1, MESSAGE, MPI_COMM_WORLD, request);
    else
        MPI_Irecv(buffer, (int)bytes, MPI_BYTE, 0, MESSAGE, MPI_COMM_WORLD, request);
}

SITE void complete(MPI_Request *request)
{
    MPI_Wait(request, MPI_STATUS_IGNORE);
}

/* Returns how much it computed until the request was complete; what is left of the work is done after that. */
SITE int64_t compute_and_test(int64_t ns, MPI_Request *request, int64_t *done)
{
    int64_t computed = 0;
    for (int slice = 0; slice < SLICES; slice++) {
        int64_t took = compute(ns / SLICES);
        if (*request == MPI_REQUEST_NULL)
            continue;
        int flag;
        computed += took;
        MPI_Test(request, &flag, MPI_STATUS_IGNORE);
        if (flag)
            *done = now_ns();
    }
    return computed;
}

/* Both sides leave this with all that was sent before received, at about the same time. */
static void meet(int message)
{
    memset(buffer, comm_rank(MPI_COMM_WORLD) == 0 ? value_of(message) : 0, bytes);
    MPI_Barrier(MPI_COMM_WORLD);
}

static struct moments measure(const struct situation *situation, int message)
{
    int sends = comm_rank(MPI_COMM_WORLD) == 0;
    const struct side *side = sends ? &situation->sender : &situation->receiver;
    struct moments m = {0, 0, 0, 0, 0};
    MPI_Request request;
    meet(message);
    if (sends && situation->receiver_early)
        MPI_Recv(NULL, 0, MPI_BYTE, 1, TOKEN, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    compute(work_ns(&side->before));

    m.post = now_ns();
    post(&request);
    m.posted = now_ns();
    if (!sends && situation->receiver_early)
        MPI_Send(NULL, 0, MPI_BYTE, 0, TOKEN, MPI_COMM_WORLD);
    if (side->tests)
        m.computed = compute_and_test(work_ns(&side->window), &request, &m.done);
    else
        m.computed = compute(work_ns(&side->window));
    m.wait = now_ns();
    if (request != MPI_REQUEST_NULL) {
        complete(&request);
        m.done = now_ns();
    }
    CHECK(is_message(buffer, bytes, message));
    return m;
}

/* The moments of rank 0, then those of rank 1. */
static void exchange(const struct moments *mine, struct moments *all, int count)
{
    int values = count * (int)(sizeof *mine / sizeof(int64_t));
    MPI_Allgather(mine, values, MPI_INT64_T, all, values, MPI_INT64_T, MPI_COMM_WORLD);
}

static void print_side(const char *side, const struct moments *m, const struct moments *sender, int count)
{
    static const char *const names[] = {"post", "posted", "wait", "done", "computed"};
    enum { COLUMNS = sizeof names / sizeof *names };
    int64_t columns[COLUMNS][MAX_ITERATIONS];
    for (int i = 0; i < count; i++) {
        columns[0][i] = m[i].post - sender[i].post;
        columns[1][i] = m[i].posted - sender[i].post;
        columns[2][i] = m[i].wait - sender[i].post;
        columns[3][i] = m[i].done - sender[i].post;
        columns[4][i] = m[i].computed;
    }
    for (int c = 0; c < COLUMNS; c++) {
        char name[32];
        snprintf(name, sizeof name, "%s_%s", side, names[c]);
        print_values(name, columns[c], count);
    }
}

static const struct situation *find_situation(const char *name)
{
    for (size_t i = 0; i < sizeof situations / sizeof *situations; i++)
        if (strcmp(situations[i].name, name) == 0)
            return &situations[i];
    fprintf(stderr, "overlap_pair: no situation %s\n", name);
    MPI_Abort(MPI_COMM_WORLD, 2);
    return NULL;
}

int main(int argc, char **argv)
{
    struct moments mine[MAX_ITERATIONS], all[2 * MAX_ITERATIONS];
    int64_t transfers[REHEARSALS];
    int rank = start(&argc, &argv, 2);
    CHECK(argc > 1);
    const struct situation *situation = find_situation(argv[1]);
    bytes = argc > 2 ? strtoul(argv[2], NULL, 10) : 32 << 20;
    int iterations = argc > 3 ? atoi(argv[3]) : 20;
    CHECK(iterations > 0 && iterations <= MAX_ITERATIONS);
    buffer = make_buffer(bytes);
    calibrate_work();
    transfer_ns = rehearse(buffer, bytes, REHEARSALS, transfers);
    for (int i = 0; i < iterations; i++)
        mine[i] = measure(situation, i);
    exchange(mine, all, iterations);
    if (rank == 0) {
        print_values("transfer", transfers, REHEARSALS);
        print_side("send", all, all, iterations);
        print_side("recv", all + iterations, all, iterations);
    }
    free(buffer);
    MPI_Finalize();
    return 0;
}
