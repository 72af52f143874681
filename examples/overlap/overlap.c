/*
 * How much of a transfer is hidden behind computation [RA07], also with one side first on purpose [RA08].
 *
 * Rank 0 sends to rank 1, synchronously, so that a send is complete only when the receive has begun. The side in question
 * posts (MPI_Issend or MPI_Irecv), computes c, and waits; the other side blocks (MPI_Recv or MPI_Ssend). l0 is the
 * latency with c = 0. c is raised by a tenth of l0 until the latency l exceeds 1.1 l0. At the last step that did not, the
 * overlap is (c - (l - l0)) / l0: what was computed without making it longer, as a share of what the transfer takes.
 * "Achieved" is the same at c = l0, when there is enough to hide all of it behind.
 *
 * When a transfer begins. l runs, in every scenario, from the moment when both sides have posted, and c is the
 * computation after that moment. For the side that posts later this is its own post, as published. Where the side in
 * question is first on purpose, it computes also while the other is late, and that hides nothing of the transfer: counted
 * from its own post, l0 would have the other's delay in it, and any library would get a full overlap behind that. So
 * there it computes as long as the other is late and then c, and both c and l begin with the other's post. With c = 0 it
 * waits at once.
 *
 * A step that exceeds 1.1 l0 is done again, twice at most, before it is believed; each attempt is a row of its own.
 * After that l0 is measured again: when it is not what it was, the machine has changed meanwhile (somebody else runs, a
 * clock is faster), nothing can be told from the difference, and the search begins again with the new l0.
 */
#include "../common/experiment.h"

enum { MOST_SIZES = 32, MOST_TENTHS = 20, AGAIN = 2, SEARCHES = 3 };

static const char help[] =
    "overlap: how much of a send, and of a receive, is hidden behind computation; two ranks\n"
    "  -b SIZES        bytes of the messages, such as 1K,64K,1M\n"
    "  -r REPETITIONS  of every step, 1 to 1001 (11)\n"
    "  -d SIDE         send or receive: the side that computes meanwhile (both, one after the other)\n"
    "  -a FIRST        none, sender or receiver: who posts first on purpose (none)\n";

struct options {
    size_t sizes[MOST_SIZES];
    int size_count, repetitions, side, first; /* side SIDES: both */
};

/* What is measured: a size in a direction. */
struct point {
    int side, first, repetitions;
    size_t bytes;
    char *buffer;
    double ahead_us; /* the other's clock */
    double rest;     /* between messages, in us */
};

struct timing {
    double work_us, latency_us, post_us, wait_us;
};

enum { TIMING_DOUBLES = sizeof(struct timing) / sizeof(double) };

struct step {
    int tag;
    struct spread work, latency, post, wait;
    struct spread percent; /* overlap */
};

struct result {
    size_t bytes;
    struct step start, reached, equal; /* c = 0; the last step within 1.1 l0; c = l0 */
};

/* --- one message -------------------------------------------------------------------------------------------------- */

static void communicate_blocking(const struct point *p, int rank, int tag)
{
    if (rank == SENDER)
        MPI_Ssend(p->buffer, (int)p->bytes, MPI_BYTE, RECEIVER, tag, MPI_COMM_WORLD);
    else
        MPI_Recv(p->buffer, (int)p->bytes, MPI_BYTE, SENDER, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void post(const struct point *p, int rank, int tag, MPI_Request *request)
{
    if (rank == SENDER)
        MPI_Issend(p->buffer, (int)p->bytes, MPI_BYTE, RECEIVER, tag, MPI_COMM_WORLD, request);
    else
        MPI_Irecv(p->buffer, (int)p->bytes, MPI_BYTE, SENDER, tag, MPI_COMM_WORLD, request);
}

/* One message with so much work; what is returned has a meaning on the side in question. */
static struct timing transfer(const struct point *p, double work_us, int tag)
{
    static int number;
    int rank = rank_in(MPI_COMM_WORLD);
    int measured = rank == (p->side == SIDE_SEND ? SENDER : RECEIVER);
    double until_other_posts = posts_late(1 - rank, p->first) ? LATE_US : 0;
    MPI_Request request;
    number++;
    if (rank == SENDER)
        fill_message(p->buffer, p->bytes, number);

    start_together(p->rest);
    if (posts_late(rank, p->first))
        compute(LATE_US);
    double begin = now_us(), posted = begin, computed = begin;
    if (measured) {
        post(p, rank, tag, &request);
        posted = now_us();
        if (work_us > 0)
            compute(until_other_posts + work_us);
        computed = now_us();
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else
        communicate_blocking(p, rank, tag);
    double end = now_us();

    if (rank == RECEIVER)
        check_message(p->buffer, p->bytes, number);
    double other = exchange_moment(begin, p->ahead_us);
    double both_posted = begin > other ? begin : other;
    double work_begin = posted > both_posted ? posted : both_posted;
    return (struct timing){.work_us = computed > work_begin ? computed - work_begin : 0,
                           .latency_us = end - both_posted,
                           .post_us = posted - begin,
                           .wait_us = end - computed};
}

/* --- steps -------------------------------------------------------------------------------------------------------- */

static struct spread spread_of_member(const struct timing *timings, int count, int member)
{
    double values[MOST_REPETITIONS];
    for (int i = 0; i < count; i++)
        values[i] = ((const double *)&timings[i])[member];
    return spread_of(values, count);
}

static double within(double value, double low, double high)
{
    return value < low ? low : value > high ? high : value;
}

/* Of every repetition; beyond 0 and 100 % there is noise only. */
static struct spread overlap_percent(const struct timing *timings, int count, double l0_us)
{
    double values[MOST_REPETITIONS];
    for (int i = 0; i < count; i++)
        values[i] = within(100 * (timings[i].work_us - (timings[i].latency_us - l0_us)) / l0_us, 0, 100);
    return spread_of(values, count);
}

static void print_step(const struct step *s, size_t bytes)
{
    print_count((size_t)s->tag);
    print_count(bytes);
    print_spread(s->work);
    print_spread(s->latency);
    print_value(s->post.median);
    print_spread(s->wait);
    end_row();
    fflush(stdout);
}

/* Both ranks get the same step. l0_us is 0 for the step that finds it. */
static struct step measure(const struct point *p, double work_us, double l0_us, int tag)
{
    struct timing timings[MOST_REPETITIONS];
    int count = p->repetitions;
    for (int i = 0; i < count; i++)
        timings[i] = transfer(p, work_us, tag);
    MPI_Bcast(timings, count * TIMING_DOUBLES, MPI_DOUBLE, p->side == SIDE_SEND ? SENDER : RECEIVER, MPI_COMM_WORLD);
    struct step s = {.tag = tag,
                     .work = spread_of_member(timings, count, 0),
                     .latency = spread_of_member(timings, count, 1),
                     .post = spread_of_member(timings, count, 2),
                     .wait = spread_of_member(timings, count, 3)};
    s.percent = overlap_percent(timings, count, l0_us > 0 ? l0_us : s.latency.median);
    if (rank_in(MPI_COMM_WORLD) == 0)
        print_step(&s, p->bytes);
    return s;
}

static void warm_up(struct point *p)
{
    double begin = now_us();
    for (int i = 0; i < warm_ups(p->bytes); i++)
        transfer(p, 0, 0);
    p->rest = rest_us(now_us() - begin, p->bytes);
}

/* Raises the work step by step, from a reference that is there; returns the next tag. */
static int search(const struct point *p, struct result *r, int tag)
{
    double l0 = r->start.latency.median;
    int equal_measured = 0;
    r->reached = r->start;
    for (int tenths = 1; tenths <= MOST_TENTHS; tenths++) {
        struct step s = measure(p, tenths * l0 / 10, l0, tag++);
        for (int again = 0; again < AGAIN && s.latency.median > 1.1 * l0; again++)
            s = measure(p, tenths * l0 / 10, l0, tag++);
        if (tenths == 10) {
            r->equal = s;
            equal_measured = 1;
        }
        if (s.latency.median > 1.1 * l0)
            break;
        r->reached = s;
    }
    if (!equal_measured)
        r->equal = measure(p, l0, l0, tag++);
    return tag;
}

static struct result find_overlap(const struct point *p, int tag)
{
    struct result r = {.bytes = p->bytes, .start = measure(p, 0, 0, tag++)};
    for (int i = 0; i < SEARCHES; i++) {
        tag = search(p, &r, tag);
        struct step later = measure(p, 0, 0, tag++);
        double ratio = later.latency.median / r.start.latency.median;
        if (ratio > 1 / 1.15 && ratio < 1.15)
            break;
        if (i + 1 < SEARCHES)
            r.start = later;
    }
    return r;
}

/* --- both tables -------------------------------------------------------------------------------------------------- */

static void print_results(const struct result *results, int count, int side, int first)
{
    printf("\ntable overlap side=%s first=%s\n", side_names[side], first_names[first]);
    print_columns("bytes l0_us* work_us latency_us overlap_percent* achieved_percent* reference_tag achieved_tag");
    for (const struct result *r = results; r < results + count; r++) {
        print_count(r->bytes);
        print_spread(r->start.latency);
        print_value(r->reached.work.median);
        print_value(r->reached.latency.median);
        print_spread(r->reached.percent);
        print_spread(r->equal.percent);
        print_count((size_t)r->start.tag);
        print_count((size_t)r->equal.tag);
        end_row();
    }
    printf("\n");
    fflush(stdout);
}

static void run_side(const struct options *o, int side)
{
    struct result results[MOST_SIZES];
    int rank = rank_in(MPI_COMM_WORLD);
    if (rank == 0) {
        printf("table steps side=%s first=%s\n", side_names[side], first_names[o->first]);
        print_columns("tag bytes work_us* latency_us* post_us wait_us*");
    }
    for (int i = 0; i < o->size_count; i++) {
        struct point p = {side, o->first, o->repetitions, o->sizes[i], make_buffer(o->sizes[i]), clock_ahead_us(), 0};
        warm_up(&p);
        results[i] = find_overlap(&p, 10000 * side + 250 * (i + 1));
        free(p.buffer);
    }
    if (rank == 0)
        print_results(results, o->size_count, side, o->first);
}

/* --- options ------------------------------------------------------------------------------------------------------ */

/* Returns 0 when help is all that is wanted. */
static int read_options(int argc, char **argv, struct options *o)
{
    int option;
    opterr = 0;
    while ((option = getopt(argc, argv, "b:r:d:a:h")) != -1)
        switch (option) {
        case 'b':
            o->size_count = read_sizes(optarg, o->sizes, MOST_SIZES);
            if (!sizes_fit(o->sizes, o->size_count))
                refuse_option("overlap", option, optarg, "up to 32 sizes of 1 byte to 2 GB, such as 1K,64K,1M");
            break;
        case 'r':
            if (!read_count(optarg, 1, MOST_REPETITIONS, &o->repetitions))
                refuse_option("overlap", option, optarg, "a number of repetitions from 1 to 1001");
            break;
        case 'd':
            o->side = index_of_name(optarg, side_names, SIDES);
            if (o->side < 0)
                refuse_option("overlap", option, optarg, "send or receive");
            break;
        case 'a':
            o->first = index_of_name(optarg, first_names, FIRSTS);
            if (o->first < 0)
                refuse_option("overlap", option, optarg, "none, sender or receiver");
            break;
        case 'h': return 0;
        default: refuse_option("overlap", optopt, NULL, NULL);
        }
    return 1;
}

int main(int argc, char **argv)
{
    struct options o = {.repetitions = 11, .side = SIDES};
    MPI_Init(&argc, &argv);
    o.size_count = read_sizes("1K,4K,16K,64K,256K,1M", o.sizes, MOST_SIZES);
    if (read_options(argc, argv, &o)) {
        need_two_ranks("overlap");
        calibrate_work();
        for (int side = 0; side < SIDES; side++)
            if (o.side == side || o.side == SIDES)
                run_side(&o, side);
    } else
        print_help(help);
    MPI_Finalize();
    return 0;
}
