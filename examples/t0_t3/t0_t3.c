/*
 * From which size do MPI_Isend and the MPI_Wait for it block, and what frees them [SP04]?
 *
 * Process 0 posts MPI_Isend at T0, process 1 MPI_Irecv; both compute, each as long as it is told; at T3 they wait. By
 * default process 0 is there long before process 1: a send that needs the receiver then waits for it, one that is buffered
 * does not. There may be several messages that add up to the size, and process 1 may call MPI_Testall as it computes.
 *
 * By default process 0 posts a little later. If both did at once, chance would decide whether MPI_Irecv finds the message
 * announced already, and may fetch it then and there, or whether it is announced to somebody who computes. Where one is to
 * post later, it waits for a word of the other that has posted, so that a busy machine cannot turn the order round.
 *
 * "Waits" and "blocks" are told from each repetition; what most of them say counts. What took less than 50 us did neither.
 *   isend_blocks  the posts of process 0 took more than a quarter of the time until process 1 was at T3
 *   send_waits    process 0 waited for more than a quarter of the time that process 1 still had until T3, if it had any
 *   recv_waits    process 1 waited for more than a quarter of: the time that process 0 still had, and the transfer alone
 *
 * Where both send, each posts its receives first; process 0 waits for its sends and then for its receives, process 1 the
 * other way round: wait0_us is of sends, wait1_us of receives.
 */
#include "../common/pair.h"

enum { MOST_MESSAGES = 256, REHEARSALS = 5, MOST_TESTS = 10000 };

#define REST_US 2000.0 /* before each repetition; see rest_us() */
#define LEAST_US 50.0

static const char help[] =
    "t0_t3: from which size do MPI_Isend and the MPI_Wait for it block, and what frees them? Two ranks\n"
    "  -b SIZES        bytes of all messages of a repetition, such as 1K,64K,1M\n"
    "  -r REPETITIONS  1 to 1001 (9)\n"
    "  -k MESSAGES     so many messages that add up to the size (1)\n"
    "  -o US,US        how much later process 0 and process 1 post (500,0)\n"
    "  -w US,US        how long process 0 and process 1 compute (1000,10000)\n"
    "  -t TESTS        calls of MPI_Testall, spread over the computation of process 1 (0)\n"
    "  -2              both send at once\n"
    "  -h              this help\n";

struct options {
    size_t sizes[MOST_SIZES];
    int size_count, repetitions, messages, tests, both;
    double offset_us[2], work_us[2];
};

/* Messages of one size. */
struct kernel {
    const struct options *options;
    size_t bytes; /* of a message */
    char *in, *out;
    double ahead_us; /* the other's clock */
};

/* Of one repetition on one rank; posts and waits are of sends on process 0, of receives on process 1. */
struct timing {
    double post_us, compute_us, wait_us;
    double blocks, waits; /* 1 or 0: whether posts, whether waits did; see above */
};

enum { POST, COMPUTE, WAIT, BLOCKS, WAITS, MEMBERS };

struct row {
    size_t bytes;
    int tag, send_waits, recv_waits, isend_blocks;
    struct spread sender[MEMBERS], receiver[MEMBERS];
};

/* That nobody reads; with MPICH 4.0, GCC warns of MPI_STATUSES_IGNORE. */
static MPI_Status statuses[2 * MOST_MESSAGES];

/* --- one repetition ----------------------------------------------------------------------------------------------- */

static void post_receives(const struct kernel *k, int other, int tag, MPI_Request *requests)
{
    for (int i = 0; i < k->options->messages; i++)
        MPI_Irecv(k->in + (size_t)i * k->bytes, (int)k->bytes, MPI_BYTE, other, tag, MPI_COMM_WORLD, &requests[i]);
}

/* One after the other: the first wait that stands still is that for the message that could not be buffered. */
static void wait_for_each(MPI_Request *requests, int count)
{
    for (int i = 0; i < count; i++)
        MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
}

static void post_sends(const struct kernel *k, int other, int tag, MPI_Request *requests)
{
    for (int i = 0; i < k->options->messages; i++)
        MPI_Isend(k->out + (size_t)i * k->bytes, (int)k->bytes, MPI_BYTE, other, tag, MPI_COMM_WORLD, &requests[i]);
}

static void compute_and_test(double us, int tests, MPI_Request *requests, int count)
{
    for (int i = 0; i < tests; i++) {
        int done;
        compute(us / (tests + 1));
        MPI_Testall(count, requests, &done, statuses);
    }
    compute(us / (tests + 1));
}

static int exceeds_quarter(double us, double of_us)
{
    return us > LEAST_US && us > of_us / 4;
}

/* Called before and after the posts: the process with the larger offset posts later than the other by the difference. */
static void keep_order(const double offset_us[2], int rank, int have_posted)
{
    double later = offset_us[rank] - offset_us[1 - rank];
    if (later < 0 && have_posted)
        MPI_Send(NULL, 0, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD);
    if (later > 0 && !have_posted)
        MPI_Recv(NULL, 0, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (!have_posted)
        compute(later > 0 ? later : offset_us[rank]);
}

/* With no work there are no tests. `alone_us`: what the transfer takes when nobody computes. */
static struct timing repeat(const struct kernel *k, const double offset_us[2], const double work_us[2], double alone_us, int tag)
{
    static int number;
    const struct options *o = k->options;
    int rank = rank_in(MPI_COMM_WORLD), other = 1 - rank;
    int sends = rank == SENDER || o->both, receives = rank == RECEIVER || o->both;
    size_t total = k->bytes * (size_t)o->messages;
    MPI_Request requests[2 * MOST_MESSAGES]; /* of receives and of sends */
    MPI_Request *of_receives = requests, *of_sends = receives ? requests + o->messages : requests;
    fill_message(k->out, total, ++number);

    start_together(REST_US);
    keep_order(offset_us, rank, 0);
    double begin = now_us();
    if (receives)
        post_receives(k, other, tag, of_receives);
    double received = now_us();
    if (sends)
        post_sends(k, other, tag, of_sends);
    double posted = now_us();
    keep_order(offset_us, rank, 1);
    double work_begin = now_us();
    if (work_us[rank] > 0)
        compute_and_test(work_us[rank], rank == RECEIVER ? o->tests : 0, requests, o->messages * (sends + receives));
    double t3 = now_us();
    wait_for_each(rank == SENDER ? of_sends : of_receives, o->messages);
    double end = now_us();
    if (o->both)
        wait_for_each(rank == SENDER ? of_receives : of_sends, o->messages);

    if (receives)
        check_message(k->in, total, number);
    double other_t3 = exchange_moment(t3, k->ahead_us), others = other_t3 > t3 ? other_t3 - t3 : 0;
    double post_us = rank == SENDER ? posted - received : received - begin, wait_us = end - t3;
    return (struct timing){.post_us = post_us,
                           .compute_us = t3 - work_begin,
                           .wait_us = wait_us,
                           .blocks = other_t3 > begin && exceeds_quarter(post_us, other_t3 - begin),
                           .waits = rank == SENDER ? others > 0 && exceeds_quarter(wait_us, others)
                                                   : exceeds_quarter(wait_us, others + alone_us)};
}

/* --- repetitions -------------------------------------------------------------------------------------------------- */

static void spread_members(const struct timing *timings, int count, struct spread members[MEMBERS])
{
    double values[MOST_REPETITIONS];
    for (int m = 0; m < MEMBERS; m++) {
        for (int i = 0; i < count; i++)
            values[i] = ((const double *)&timings[i])[m];
        members[m] = spread_of(values, count);
    }
}

/* Members of both sides, on both ranks. */
static void measure(const struct kernel *k, const double offset_us[2], const double work_us[2], double alone_us, int tag,
                    int count, struct row *row)
{
    struct timing timings[MOST_REPETITIONS];
    struct spread mine[MEMBERS];
    for (int i = 0; i < count; i++)
        timings[i] = repeat(k, offset_us, work_us, alone_us, tag);
    spread_members(timings, count, mine);
    memcpy(rank_in(MPI_COMM_WORLD) == SENDER ? row->sender : row->receiver, mine, sizeof mine);
    MPI_Bcast(row->sender, sizeof row->sender, MPI_BYTE, SENDER, MPI_COMM_WORLD);
    MPI_Bcast(row->receiver, sizeof row->receiver, MPI_BYTE, RECEIVER, MPI_COMM_WORLD);
}

/* How long the receives take when nobody computes. */
static double transfer_alone_us(const struct kernel *k)
{
    static const double nothing[2] = {0, 0};
    struct row row;
    measure(k, nothing, nothing, 0, 0, REHEARSALS, &row);
    return row.receiver[POST].median + row.receiver[WAIT].median;
}

static struct row measure_size(const struct kernel *k, int tag)
{
    const struct options *o = k->options;
    struct row row = {.bytes = k->bytes * (size_t)o->messages, .tag = tag};
    double alone = transfer_alone_us(k);
    measure(k, o->offset_us, o->work_us, alone, tag, o->repetitions, &row);
    row.isend_blocks = row.sender[BLOCKS].median > 0.5;
    row.send_waits = row.sender[WAITS].median > 0.5;
    row.recv_waits = row.receiver[WAITS].median > 0.5;
    return row;
}

/* --- both tables -------------------------------------------------------------------------------------------------- */

static void print_row(const struct row *row)
{
    print_count((size_t)row->tag);
    print_count(row->bytes);
    print_spread(row->sender[POST]);
    print_value(row->sender[COMPUTE].median);
    print_spread(row->sender[WAIT]);
    print_value(row->receiver[POST].median);
    print_value(row->receiver[COMPUTE].median);
    print_spread(row->receiver[WAIT]);
    print_count((size_t)row->send_waits);
    print_count((size_t)row->recv_waits);
    print_count((size_t)row->isend_blocks);
    end_row();
    fflush(stdout);
}

static int isend_blocks(const struct row *row)
{
    return row->isend_blocks;
}

static int send_waits(const struct row *row)
{
    return row->send_waits;
}

/* The smallest size that does, and before it the largest that does not. */
static void print_bracket(const struct row *rows, int count, int (*does)(const struct row *))
{
    const struct row *smallest = NULL, *largest = NULL;
    for (const struct row *r = rows; r < rows + count; r++)
        if (does(r) && (!smallest || r->bytes < smallest->bytes))
            smallest = r;
    for (const struct row *r = rows; r < rows + count; r++)
        if (!does(r) && (!smallest || r->bytes < smallest->bytes) && (!largest || r->bytes > largest->bytes))
            largest = r;
    largest ? print_count(largest->bytes) : print_nothing();
    smallest ? print_count(smallest->bytes) : print_nothing();
}

static void print_thresholds(const struct row *rows, int count)
{
    printf("\ntable thresholds\n");
    print_columns("isend_buffered_bytes isend_blocking_bytes wait_buffered_bytes wait_blocking_bytes");
    print_bracket(rows, count, isend_blocks);
    print_bracket(rows, count, send_waits);
    end_row();
    fflush(stdout);
}

static void run(const struct options *o)
{
    struct row rows[MOST_SIZES];
    int rank = rank_in(MPI_COMM_WORLD);
    if (rank == 0) {
        printf("table t0_t3 messages=%d tests=%d both=%d offset0_us=%g offset1_us=%g work0_us=%g work1_us=%g\n", o->messages,
               o->tests, o->both, o->offset_us[0], o->offset_us[1], o->work_us[0], o->work_us[1]);
        print_columns("tag bytes isend_us* compute0_us wait0_us* irecv_us compute1_us wait1_us* send_waits recv_waits isend_blocks");
    }
    for (int i = 0; i < o->size_count; i++) {
        size_t bytes = o->sizes[i] / (size_t)o->messages;
        struct kernel k = {o, bytes, make_buffer(o->sizes[i]), make_buffer(o->sizes[i]), clock_ahead_us()};
        rows[i] = measure_size(&k, 100 * (i + 1));
        if (rank == 0)
            print_row(&rows[i]);
        free(k.in);
        free(k.out);
    }
    if (rank == 0)
        print_thresholds(rows, o->size_count);
}

/* --- options ------------------------------------------------------------------------------------------------------ */

/* Reads "1000,10000"; returns whether the text is two times of up to a minute. */
static int read_times(const char *text, double us[2])
{
    enum { MOST_US = 60000000 };
    char rest;
    return sscanf(text, "%lf,%lf%c", &us[0], &us[1], &rest) == 2 && us[0] >= 0 && us[1] >= 0 && us[0] <= MOST_US && us[1] <= MOST_US;
}

static void read_option(int option, struct options *o)
{
    const char *takes = NULL;
    switch (option) {
    case 'b':
        o->size_count = read_sizes(optarg, o->sizes, MOST_SIZES);
        if (!sizes_fit(o->sizes, o->size_count))
            takes = "up to 32 sizes of 1 byte to 2 GB, such as 1K,64K,1M";
        break;
    case 'r':
        if (!read_count(optarg, 1, MOST_REPETITIONS, &o->repetitions))
            takes = "a number of repetitions from 1 to 1001";
        break;
    case 'k':
        if (!read_count(optarg, 1, MOST_MESSAGES, &o->messages))
            takes = "a number of messages from 1 to 256";
        break;
    case 't':
        if (!read_count(optarg, 0, MOST_TESTS, &o->tests))
            takes = "a number of tests from 0 to 10000";
        break;
    case 'o':
        if (!read_times(optarg, o->offset_us))
            takes = "two times in microseconds, such as 0,1000";
        break;
    case 'w':
        if (!read_times(optarg, o->work_us))
            takes = "two times in microseconds, such as 1000,10000";
        break;
    case '2': o->both = 1; break;
    default: refuse_option("t0_t3", optopt, NULL, NULL);
    }
    if (takes)
        refuse_option("t0_t3", option, optarg, takes);
}

/* Returns 0 when help is all that is wanted. */
static int read_options(int argc, char **argv, struct options *o)
{
    int option;
    opterr = 0;
    while ((option = getopt(argc, argv, "b:r:k:o:w:t:2h")) != -1) {
        if (option == 'h')
            return 0;
        read_option(option, o);
    }
    refuse_words("t0_t3", argc);
    for (int i = 0; i < o->size_count; i++)
        if (o->sizes[i] < (size_t)o->messages)
            give_up("t0_t3", "a size of -b is less than a byte for each message of -k");
    return 1;
}

int main(int argc, char **argv)
{
    struct options o = {.repetitions = 9, .messages = 1, .offset_us = {500, 0}, .work_us = {1000, 10000}};
    MPI_Init(&argc, &argv);
    o.size_count = read_sizes("256,1K,4K,8K,16K,32K,60000,64K,128K,256K,1M", o.sizes, MOST_SIZES);
    if (read_options(argc, argv, &o)) {
        need_two_ranks("t0_t3");
        calibrate_work();
        run(&o);
    } else
        print_help(help);
    MPI_Finalize();
    return 0;
}
