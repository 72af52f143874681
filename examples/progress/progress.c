/*
 * Does a transfer go on while nobody calls MPI [RA07]?
 *
 * One side posts (MPI_Issend or MPI_Irecv), computes for a delay, and waits; the other side blocks (MPI_Recv or MPI_Ssend).
 * With progress of its own the message arrives as if there were no delay, and the wait after it finds nothing to do.
 * Without, the message arrives when the delay is over: its latency grows by the delay, and the wait does the work.
 *
 * The latency is that of the data: from the moment when both sides have posted until the receiver has the message. A
 * receiver that is in a delay looks at the last byte of its buffer; what it sees is when the data arrived, and when it saw
 * nothing they arrived with the end of its MPI_Wait. l0 is the latency without a delay; "post delay" is MPI_Wait after it.
 *
 * Delays are multiples of l0, of short messages of 50 us. Repetitions of all delays take turns, so that a machine that
 * becomes slower or faster meanwhile changes all of them alike.
 */
#include "../common/pair.h"

static const double multiples[] = {0, 0.5, 1, 2, 4};
enum { DELAYS = sizeof multiples / sizeof *multiples, LOOKS = 100 };

#define LEAST_UNIT_US 50.0

/* Of one message on one rank. */
struct timing {
    double delay_us, post_delay_us; /* of the side that has the delay */
    double latency_us, arrived_us;  /* of the receiver; arrived_us 0: not within the delay */
};

enum { TIMING_DOUBLES = sizeof(struct timing) / sizeof(double) };

struct row {
    int tag;
    struct spread delay, latency, post_delay, percent;
    double arrived_us; /* 0: in half of the repetitions or more not within the delay */
};

struct verdict {
    size_t bytes;
    double l0_us, growth_percent, post_delay_percent;
};

/* --- measuring ---------------------------------------------------------------------------------------------------- */

static struct timing time_transfer(const struct pair *p, double delay_us, int tag)
{
    struct moments m = transfer(p, delay_us, tag);
    double arrived = m.arrived > 0 ? m.arrived : m.end;
    double left_from = m.worked > m.both_posted ? m.worked : m.both_posted;
    return (struct timing){.delay_us = worked_us(&m),
                           .post_delay_us = m.end - left_from,
                           .latency_us = arrived > m.both_posted ? arrived - m.both_posted : 0,
                           .arrived_us = m.arrived > 0 ? arrived - m.both_posted : 0};
}

/* Takes from the other rank what it knows better; both have the same after that. */
static void agree(const struct pair *p, struct timing *mine, int count)
{
    struct timing theirs[MOST_REPETITIONS];
    int other = 1 - rank_in(MPI_COMM_WORLD);
    MPI_Sendrecv(mine, count * TIMING_DOUBLES, MPI_DOUBLE, other, 0, theirs, count * TIMING_DOUBLES, MPI_DOUBLE, other, 0,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < count; i++) {
        if (other == working_rank(p)) {
            mine[i].delay_us = theirs[i].delay_us;
            mine[i].post_delay_us = theirs[i].post_delay_us;
        }
        if (other == RECEIVER) {
            mine[i].latency_us = theirs[i].latency_us;
            mine[i].arrived_us = theirs[i].arrived_us;
        }
    }
}

static struct spread spread_of_member(const struct timing *timings, int count, int member, double scale)
{
    double values[MOST_REPETITIONS];
    for (int i = 0; i < count; i++)
        values[i] = scale * ((const double *)&timings[i])[member];
    return spread_of(values, count);
}

static struct row make_row(const struct timing *timings, int count, int tag, double l0_us)
{
    int arrived = 0;
    double moments[MOST_REPETITIONS];
    for (int i = 0; i < count; i++)
        if (timings[i].arrived_us != 0)
            moments[arrived++] = timings[i].arrived_us;
    return (struct row){.tag = tag,
                        .delay = spread_of_member(timings, count, 0, 1),
                        .post_delay = spread_of_member(timings, count, 1, 1),
                        .percent = spread_of_member(timings, count, 1, 100 / l0_us),
                        .latency = spread_of_member(timings, count, 2, 1),
                        .arrived_us = 2 * arrived > count ? spread_of(moments, arrived).median : 0};
}

/* What the delays are multiples of. */
static double find_unit(const struct pair *p, int count)
{
    struct timing timings[MOST_REPETITIONS];
    for (int i = 0; i < count; i++)
        timings[i] = time_transfer(p, 0, 0);
    agree(p, timings, count);
    double l0 = spread_of_member(timings, count, 2, 1).median;
    return l0 > LEAST_UNIT_US ? l0 : LEAST_UNIT_US;
}

static void measure(const struct pair *p, int count, int tag, struct row rows[DELAYS])
{
    static struct timing timings[DELAYS][MOST_REPETITIONS];
    double unit = find_unit(p, count);
    for (int i = 0; i < count; i++)
        for (int d = 0; d < DELAYS; d++)
            timings[d][i] = time_transfer(p, multiples[d] * unit, tag + d);
    for (int d = 0; d < DELAYS; d++)
        agree(p, timings[d], count);
    double l0 = spread_of_member(timings[0], count, 2, 1).median;
    for (int d = 0; d < DELAYS; d++)
        rows[d] = make_row(timings[d], count, tag + d, l0);
}

/* By how much of the delay the latency grows: between the two longest delays, where a transfer with progress is over. */
static double growth_percent(const struct row rows[DELAYS])
{
    const struct row *longest = &rows[DELAYS - 1], *before = longest - 1;
    double growth = 100 * (longest->latency.median - before->latency.median) / (longest->delay.median - before->delay.median);
    return growth < 0 ? 0 : growth > 100 ? 100 : growth;
}

/* --- both tables -------------------------------------------------------------------------------------------------- */

static void print_row(const struct row *row, size_t bytes)
{
    print_count((size_t)row->tag);
    print_count(bytes);
    print_spread(row->delay);
    print_spread(row->latency);
    print_spread(row->post_delay);
    print_spread(row->percent);
    if (row->arrived_us != 0)
        print_value(row->arrived_us);
    else
        print_nothing();
    end_row();
}

static void print_verdicts(const struct verdict *verdicts, int count, int side, int first)
{
    printf("\ntable verdict side=%s first=%s\n", side_names[side], first_names[first]);
    print_columns("bytes l0_us growth_percent post_delay_percent");
    for (const struct verdict *v = verdicts; v < verdicts + count; v++) {
        print_count(v->bytes);
        print_value(v->l0_us);
        print_value(v->growth_percent);
        print_value(v->post_delay_percent);
        end_row();
    }
    printf("\n");
    fflush(stdout);
}

static void run_side(const struct pair_options *o, int side)
{
    struct verdict verdicts[MOST_SIZES];
    struct row rows[DELAYS];
    int rank = rank_in(MPI_COMM_WORLD);
    if (rank == 0) {
        printf("table progress side=%s first=%s\n", side_names[side], first_names[o->first]);
        print_columns("tag bytes delay_us* latency_us* post_delay_us* post_delay_percent* arrived_us");
    }
    for (int i = 0; i < o->size_count; i++) {
        struct pair p = make_pair(side, o->first, LOOKS, o->sizes[i]);
        warm_up(&p);
        measure(&p, o->repetitions, 10000 * side + 100 * (i + 1), rows);
        for (int d = 0; d < DELAYS && rank == 0; d++)
            print_row(&rows[d], p.bytes);
        fflush(stdout);
        verdicts[i] = (struct verdict){p.bytes, rows[0].latency.median, growth_percent(rows), rows[DELAYS - 1].percent.median};
        free(p.buffer);
    }
    if (rank == 0)
        print_verdicts(verdicts, o->size_count, side, o->first);
}

int main(int argc, char **argv)
{
    return run_pair(argc, argv, "progress", "progress: does a transfer go on while nobody calls MPI? Two ranks\n", 9,
                    "1K,4K,16K,64K,256K,1M", run_side);
}
