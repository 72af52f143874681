/*
 * How much processor time do blocking collectives take ([HO07])? What they leave idle could compute, if there were a way to.
 *
 * For communicators of 2, 4, 8 ... ranks and for several sizes, a collective is called many times in succession. Wall time and the
 * process' user and system time are taken over batches that are long beside the resolution of getrusage.
 */
#include "../common/experiment.h"

#include <sys/resource.h>

enum op { ALLREDUCE, BCAST, BARRIER, OPS };
enum { MOST_SIZES = 32, MOST_COMMUNICATORS = 32, MOST_CALLS = 1 << 24 };

static const char *const op_names[OPS] = {"allreduce", "bcast", "barrier"};

static const char help[] =
    "collective_cpu [-c OPS] [-p RANKS] [-b BYTES] [-r BATCHES] [-m MS]\n"
    "  -c  some of allreduce, bcast, barrier, separated by commas        (all)\n"
    "  -p  sizes of communicators, separated by commas                   (2,4,8 ... as far as there are ranks)\n"
    "  -b  sizes of messages, separated by commas, K and M are understood  (8,1K,64K,1M)\n"
    "  -r  batches, of which the median and quartiles are printed        (11)\n"
    "  -m  milliseconds of a batch, at least                             (50)\n";

struct options {
    int ops[OPS];
    size_t ranks[MOST_COMMUNICATORS], bytes[MOST_SIZES];
    int communicators, sizes, batches, least_ms;
};

/* What a batch took, in microseconds. */
enum part { WALL, USER, SYSTEM, PARTS };

/* The measured calls go over `measured` and nothing else does; what they are agreed upon with goes over `other`. */
struct group {
    MPI_Comm measured, other;
    int ranks;
};

static struct options options = {.bytes = {8, 1024, 65536, 1048576}, .sizes = 4, .batches = 11, .least_ms = 50};
static int rank;

/* --- calls -------------------------------------------------------------------------------------------------------- */

struct buffers {
    char *from, *to;
};

static void call(enum op op, const struct buffers *buffers, size_t bytes, MPI_Comm comm)
{
    switch (op) {
    case ALLREDUCE:
        MPI_Allreduce(buffers->from, buffers->to, (int)(bytes / sizeof(double)), MPI_DOUBLE, MPI_SUM, comm);
        break;
    case BCAST: MPI_Bcast(buffers->to, (int)bytes, MPI_BYTE, 0, comm); break;
    default: MPI_Barrier(comm);
    }
}

static void call_many(enum op op, const struct buffers *buffers, size_t bytes, int calls, MPI_Comm comm)
{
    for (int i = 0; i < calls; i++)
        call(op, buffers, bytes, comm);
}

static double cpu_us(const struct timeval *time)
{
    return (double)time->tv_sec * 1e6 + (double)time->tv_usec;
}

/* Everybody begins a batch together; each rank's time ends with its own last call. */
static void run_batch(const struct group *group, enum op op, const struct buffers *buffers, size_t bytes, int calls,
                      double us[PARTS])
{
    struct rusage before, after;
    MPI_Barrier(group->other);
    getrusage(RUSAGE_SELF, &before);
    double begin = now_us();
    call_many(op, buffers, bytes, calls, group->measured);
    us[WALL] = now_us() - begin;
    getrusage(RUSAGE_SELF, &after);
    us[USER] = cpu_us(&after.ru_utime) - cpu_us(&before.ru_utime);
    us[SYSTEM] = cpu_us(&after.ru_stime) - cpu_us(&before.ru_stime);
}

/* So many calls that a batch is long enough on the rank that is through first. Tried on the other communicator, which warms up too. */
static int calls_in_batch(const struct group *group, enum op op, const struct buffers *buffers, size_t bytes)
{
    double least_us = options.least_ms * 1e3;
    for (int calls = 4;; calls *= 2) {
        MPI_Barrier(group->other);
        double begin = now_us();
        call_many(op, buffers, bytes, calls, group->other);
        double took = now_us() - begin;
        MPI_Allreduce(MPI_IN_PLACE, &took, 1, MPI_DOUBLE, MPI_MIN, group->other);
        if (took >= least_us / 4)
            return (int)(calls * least_us * 1.1 / took) + 1;
        if (calls >= MOST_CALLS)
            return calls;
    }
}

static void check_results(enum op op, const struct buffers *buffers, size_t bytes, int ranks)
{
    if (op == BCAST)
        check_message(buffers->to, bytes, 1);
    for (size_t i = 0; op == ALLREDUCE && i < bytes / sizeof(double); i++)
        if (((double *)buffers->to)[i] != ranks) {
            fprintf(stderr, "collective_cpu: an element of MPI_Allreduce is %g, not %d\n", ((double *)buffers->to)[i], ranks);
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
}

/* --- a row -------------------------------------------------------------------------------------------------------- */

static void print_row(double measured[][MOST_REPETITIONS], size_t bytes, int calls)
{
    print_count(bytes);
    print_count((size_t)calls);
    for (int column_of = 0; column_of < PARTS + 1; column_of++)
        print_spread(spread_of(measured[column_of], options.batches));
    end_row();
}

/* Time of a call, and shares of wall time: means over the ranks of the communicator. */
static void measure_row(const struct group *group, enum op op, size_t bytes)
{
    enum { CALL, USER_SHARE, SYSTEM_SHARE, IDLE_SHARE, COLUMNS };
    static double measured[COLUMNS][MOST_REPETITIONS];
    struct buffers buffers = {make_buffer(bytes), make_buffer(bytes)};
    for (size_t i = 0; i < bytes / sizeof(double); i++)
        ((double *)buffers.from)[i] = 1;
    if (op == BCAST && rank == 0)
        fill_message(buffers.to, bytes, 1);
    int calls = calls_in_batch(group, op, &buffers, bytes);
    for (int batch = 0; batch < options.batches; batch++) {
        double us[PARTS], means[COLUMNS];
        run_batch(group, op, &buffers, bytes, calls, us);
        double columns[COLUMNS] = {us[WALL] / calls, 100 * us[USER] / us[WALL], 100 * us[SYSTEM] / us[WALL],
                                   100 * (1 - (us[USER] + us[SYSTEM]) / us[WALL])};
        MPI_Reduce(columns, means, COLUMNS, MPI_DOUBLE, MPI_SUM, 0, group->other);
        for (int i = 0; rank == 0 && i < COLUMNS; i++)
            measured[i][batch] = means[i] / group->ranks;
    }
    check_results(op, &buffers, bytes, group->ranks);
    if (rank == 0)
        print_row(measured, bytes, calls);
    free(buffers.from);
    free(buffers.to);
}

/* --- the operation alone --------------------------------------------------------------------------------------------- */

/* What the reduction of a message takes on a processor, while all ranks do the same: m gamma of the model in [HO07]. */
static void measure_reduction(size_t bytes)
{
    enum { LEAST_US = 500 };
    double us[MOST_REPETITIONS];
    struct buffers buffers = {make_buffer(bytes), make_buffer(bytes)};
    for (int batch = 0, calls = 1; batch < options.batches;) {
        double begin = now_us();
        for (int i = 0; i < calls; i++)
            MPI_Reduce_local(buffers.from, buffers.to, (int)(bytes / sizeof(double)), MPI_DOUBLE, MPI_SUM);
        double took = now_us() - begin;
        if (took < LEAST_US && calls < MOST_CALLS)
            calls *= 2;
        else
            us[batch++] = took / calls;
    }
    if (rank == 0) {
        print_count(bytes);
        print_spread(spread_of(us, options.batches));
        end_row();
    }
    free(buffers.from);
    free(buffers.to);
}

static void measure_reductions(void)
{
    if (rank == 0) {
        printf("table local_reduction\n");
        print_columns("bytes reduce_us*");
    }
    for (int i = 0; i < options.sizes; i++) {
        MPI_Barrier(MPI_COMM_WORLD);
        measure_reduction(options.bytes[i]);
    }
    fflush(stdout);
}

/* --- tables ------------------------------------------------------------------------------------------------------- */

static void measure_table(const struct group *group, enum op op)
{
    size_t nothing = 0;
    const size_t *bytes = op == BARRIER ? &nothing : options.bytes;
    int sizes = op == BARRIER ? 1 : options.sizes;
    if (rank == 0) {
        printf("table collective_cpu op=%s ranks=%d\n", op_names[op], group->ranks);
        print_columns("bytes calls call_us* user_percent* system_percent* idle_percent*");
    }
    for (int i = 0; i < sizes; i++)
        measure_row(group, op, bytes[i]);
    fflush(stdout);
}

static void measure_group(int ranks)
{
    struct group group = {.ranks = ranks};
    int color = rank < ranks ? 0 : MPI_UNDEFINED;
    char name[MPI_MAX_OBJECT_NAME];
    MPI_Comm_split(MPI_COMM_WORLD, color, rank, &group.measured);
    if (rank < ranks) {
        snprintf(name, sizeof name, "collective_cpu %d", ranks);
        MPI_Comm_set_name(group.measured, name);
        MPI_Comm_dup(group.measured, &group.other);
        MPI_Comm_set_name(group.other, "agreement");
        note_crowding(group.other);
        for (int op = 0; op < OPS; op++)
            if (options.ops[op])
                measure_table(&group, (enum op)op);
        MPI_Comm_free(&group.measured);
        MPI_Comm_free(&group.other);
    }
}

/* Ranks that are not in a communicator sleep until its members are through, and leave them the processors. */
static void sleep_until_all_are_here(void)
{
    enum { PAUSE_US = 2000 };
    MPI_Request request;
    int done = 0;
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    for (;;) {
        MPI_Test(&request, &done, MPI_STATUS_IGNORE);
        if (done)
            return;
        usleep(PAUSE_US);
    }
}

/* --- options ------------------------------------------------------------------------------------------------------ */

static int read_ops(const char *text)
{
    memset(options.ops, 0, sizeof options.ops);
    if (!*text)
        return 0;
    while (*text) {
        size_t length = strcspn(text, ",");
        int op = 0;
        while (op < OPS && (strlen(op_names[op]) != length || strncmp(text, op_names[op], length) != 0))
            op++;
        if (op == OPS)
            return 0;
        options.ops[op] = 1;
        text += length + (text[length] == ',');
    }
    return 1;
}

static int are_within(const size_t *values, int count, size_t least, size_t most)
{
    for (int i = 0; i < count; i++)
        if (values[i] < least || values[i] > most)
            return 0;
    return count > 0;
}

/* Returns whether there is something to run. */
static int read_options(int argc, char **argv)
{
    const char *const name = "collective_cpu";
    size_t ranks = (size_t)size_of(MPI_COMM_WORLD);
    int option;
    opterr = 0;
    for (int op = 0; op < OPS; op++)
        options.ops[op] = 1;
    for (size_t size = 2; size <= ranks; size *= 2)
        options.ranks[options.communicators++] = size;
    while ((option = getopt(argc, argv, "c:p:b:r:m:h")) != -1)
        switch (option) {
        case 'c':
            if (!read_ops(optarg))
                give_up(name, "-c takes some of allreduce, bcast and barrier");
            break;
        case 'p':
            options.communicators = read_sizes(optarg, options.ranks, MOST_COMMUNICATORS);
            if (!are_within(options.ranks, options.communicators, 2, ranks))
                give_up(name, "-p takes numbers of ranks: 2 or more, and not more than there are");
            break;
        case 'b':
            options.sizes = read_sizes(optarg, options.bytes, MOST_SIZES);
            if (!are_within(options.bytes, options.sizes, sizeof(double), INT32_MAX))
                give_up(name, "-b takes sizes from 8 bytes to 2047M");
            break;
        case 'r':
            if (!read_count(optarg, 1, MOST_REPETITIONS, &options.batches))
                give_up(name, "-r takes a number from 1 to 1001");
            break;
        case 'm':
            if (!read_count(optarg, 10, 100000, &options.least_ms))
                give_up(name, "-m takes milliseconds: 10 or more, as getrusage is no finer");
            break;
        case 'h':
            print_help(help);
            return 0;
        default: give_up(name, "no such option, or one without its value; -h lists them");
        }
    refuse_words(name, argc);
    for (int i = 0; i < options.sizes; i++)
        options.bytes[i] -= options.bytes[i] % sizeof(double); /* whole elements */
    return 1;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    rank = rank_in(MPI_COMM_WORLD);
    if (read_options(argc, argv)) {
        if (size_of(MPI_COMM_WORLD) < 2)
            give_up("collective_cpu", "2 ranks or more");
        if (options.ops[ALLREDUCE])
            measure_reductions();
        for (int i = 0; i < options.communicators; i++) {
            measure_group((int)options.ranks[i]);
            sleep_until_all_are_here();
        }
    }
    MPI_Finalize();
    return 0;
}
