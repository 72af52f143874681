/*
 * How much of a transfer is hidden behind computation [RA07], also with one side first on purpose [RA08].
 *
 * Rank 0 sends to rank 1, synchronously, so that a send is complete only when the receive has begun. The side in question
 * posts (MPI_Issend or MPI_Irecv), computes c, and waits; the other side blocks (MPI_Recv or MPI_Ssend). l0 is the
 * latency with c = 0. c is raised by a tenth of l0 a step. At the last step whose latency l does not exceed 1.1 l0, the
 * overlap is (c - (l - l0)) / l0: what was computed without making it longer, as a share of what the transfer takes.
 * "Achieved" is the same at c = l0, when there is enough to hide all of it behind.
 *
 * The paper stops at the first step that exceeds 1.1 l0. Here all steps up to 1.2 l0 are done: what makes progress now and
 * then only (a timer, a thread that wakes up) may hide nothing of a short computation and all of a longer one.
 *
 * When a transfer begins. l runs, in every scenario, from the moment when both sides have posted, and c is the
 * computation after that moment. For the side that posts later this is its own post, as published. Where the side in
 * question is first on purpose, it computes also while the other is late, and that hides nothing of the transfer: counted
 * from its own post, l0 would have the other's delay in it, and any library would get a full overlap behind that. So
 * there it computes as long as the other is late and then c, and both c and l begin with the other's post. With c = 0 it
 * waits at once.
 *
 * A step that exceeds 1.1 l0 is done again before it is believed; each attempt is a row of its own. At the end l0
 * is measured again: when it is not what it was, the machine has changed meanwhile (somebody else runs, a clock is faster),
 * nothing can be told from the difference, and the search begins again with the new l0.
 */
#include "../common/pair.h"

enum { MOST_TENTHS = 12, SEARCHES = 3 };

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

/* What is returned has a meaning on the side in question. */
static struct timing time_transfer(const struct pair *p, double work_us, int tag)
{
    struct moments m = transfer(p, work_us, tag);
    return (struct timing){.work_us = worked_us(&m),
                           .latency_us = m.end - m.both_posted,
                           .post_us = m.posted - m.begin,
                           .wait_us = m.end - m.worked};
}

/* --- steps -------------------------------------------------------------------------------------------------------- */

static struct spread spread_of_member(const struct timing *timings, int count, int member)
{
    double values[MOST_REPETITIONS];
    for (int i = 0; i < count; i++)
        values[i] = ((const double *)&timings[i])[member];
    return spread_of(values, count);
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
static struct step measure(const struct pair *p, int count, double work_us, double l0_us, int tag)
{
    struct timing timings[MOST_REPETITIONS];
    for (int i = 0; i < count; i++)
        timings[i] = time_transfer(p, work_us, tag);
    MPI_Bcast(timings, count * TIMING_DOUBLES, MPI_DOUBLE, working_rank(p), MPI_COMM_WORLD);
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

/* Raises the work step by step, from a reference that is there; returns the next tag. */
static int search(const struct pair *p, int repetitions, struct result *r, int tag)
{
    double l0 = r->start.latency.median;
    r->reached = r->start;
    for (int tenths = 1; tenths <= MOST_TENTHS; tenths++) {
        struct step s = measure(p, repetitions, tenths * l0 / 10, l0, tag++);
        if (s.latency.median > 1.1 * l0)
            s = measure(p, repetitions, tenths * l0 / 10, l0, tag++);
        if (tenths == 10)
            r->equal = s;
        if (s.latency.median <= 1.1 * l0)
            r->reached = s;
    }
    return tag;
}

/* Where others keep the processors busy no search is better than the one before, and all of them are slow. */
static int time_is_left(double begin_us)
{
    int left = now_us() - begin_us < 2e6;
    MPI_Bcast(&left, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return left;
}

static struct result find_overlap(const struct pair *p, int repetitions, int tag)
{
    struct result r = {.bytes = p->bytes, .start = measure(p, repetitions, 0, 0, tag++)};
    double begin = now_us();
    for (int i = 0; i < SEARCHES; i++) {
        tag = search(p, repetitions, &r, tag);
        struct step later = measure(p, repetitions, 0, 0, tag++);
        double ratio = later.latency.median / r.start.latency.median;
        if (ratio > 1 / 1.15 && ratio < 1.15)
            break;
        if (i + 1 == SEARCHES || !time_is_left(begin))
            break;
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

static void run_side(const struct pair_options *o, int side)
{
    struct result results[MOST_SIZES];
    int rank = rank_in(MPI_COMM_WORLD);
    if (rank == 0) {
        printf("table steps side=%s first=%s\n", side_names[side], first_names[o->first]);
        print_columns("tag bytes work_us* latency_us* post_us wait_us*");
    }
    for (int i = 0; i < o->size_count; i++) {
        struct pair p = make_pair(side, o->first, 0, o->sizes[i]);
        warm_up(&p);
        results[i] = find_overlap(&p, o->repetitions, 10000 * side + 250 * (i + 1));
        free(p.buffer);
    }
    if (rank == 0)
        print_results(results, o->size_count, side, o->first);
}

int main(int argc, char **argv)
{
    return run_pair(argc, argv, "overlap", "overlap: how much of a send, and of a receive, is hidden behind computation; two ranks\n",
                    11, "1K,4K,16K,64K,256K,1M", run_side);
}
