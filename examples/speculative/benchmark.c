/*
 * See benchmark.h. Rank 0 sends to rank 1. The side in question posts, computes, and waits; the other one waits at once. One of
 * both is first by LATE_US on purpose. What is counted is as in examples/overlap and examples/progress: times begin when both
 * sides have posted, so that who is first does not overlap its computation with the other's delay.
 */
#include "benchmark.h"

#include <stdlib.h>
#include <string.h>

#include "processor.h"

#include "../common/measure.h"

#define LATE_US 500.0

/*
 * Messages during which threads of both waited longer for a processor are not counted as long as there are others. Who naps
 * waits a few microseconds each time it wakes up, which adds up; who is put aside for another program waits for milliseconds.
 */
static double most_waited_us(size_t bytes)
{
    return 300 + 0.2 * (double)bytes / the_link.bytes_per_us;
}

/* And those for which the one who is to post first came too late. */
#define OUT_OF_ORDER_US 1e9

enum { SENDER, RECEIVER };
enum { MOST_TENTHS = 12, SEARCHES = 3, TRIALS_OF_ONE = 6, LOOKS = 100, TAG = 1 };

const char *const first_names[FIRSTS] = {"sender", "receiver"};
const char *const side_names[SIDES] = {"send", "receive"};

/* What is measured. */
struct measured {
    const struct benchmark *benchmark;
    enum protocol protocol;
    enum first first;
    enum side side;
    size_t bytes;
    char *buffer;
};

/* Of one message: worked, from, until: of the side in question; latency: until the receiver had the data. */
struct timing {
    double worked_us, until_end_us, after_work_us, latency_us;
    double waited_us; /* for a processor, all threads of both */
};

struct row {
    struct spread l0, overlap, achieved, left;
    double growth_percent, disturbed_percent;
};

/* --- one message -------------------------------------------------------------------------------------------------- */

static int working_rank(const struct measured *m)
{
    return m->side == SIDE_SEND ? SENDER : RECEIVER;
}

static int is_late(const struct measured *m, int of_rank)
{
    return of_rank == (m->first == SENDER_FIRST ? RECEIVER : SENDER);
}

/* Both ranks get what the other wrote. */
static void exchange(const void *mine, void *theirs, size_t bytes)
{
    memcpy(shared_room(rank), mine, bytes);
    wait_for_other();
    memcpy(theirs, shared_room(1 - rank), bytes);
    wait_for_other();
}

/* Returns when the last byte was there, 0 when it was not. No message ends in a byte of 0. */
static double compute_and_look(const struct measured *m, double us)
{
    volatile const char *last = &m->buffer[m->bytes - 1];
    double arrived = 0;
    for (int i = 0; i < LOOKS; i++) {
        compute(us / LOOKS);
        if (!arrived && *last)
            arrived = now_us();
    }
    return arrived;
}

static void check_message(const struct measured *m, int value)
{
    if (m->buffer[0] != value || memcmp(m->buffer, m->buffer + 1, m->bytes - 1) != 0)
        fail("a message of %zu bytes is not what was sent", m->bytes);
}

static struct timing time_message(const struct measured *m, double work_us)
{
    static int number;
    int value = ++number % 100 + 1;
    double until_other_posts = is_late(m, 1 - rank) ? LATE_US : 0, arrived = 0;
    struct request request;
    memset(m->buffer, rank == SENDER ? value : 0, m->bytes);

    start_together();
    double waited = waited_for_processor_us();
    if (is_late(m, rank))
        compute(LATE_US);
    double begin = now_us();
    if (rank == SENDER)
        isend(&request, m->buffer, m->bytes, TAG);
    else
        irecv(&request, m->buffer, m->bytes, TAG);
    double posted = now_us();
    if (rank == working_rank(m) && work_us > 0)
        arrived = compute_and_look(m, until_other_posts + work_us);
    double worked = now_us();
    wait_for(&request);
    double end = now_us();

    waited = waited_for_processor_us() - waited;
    if (rank == RECEIVER)
        check_message(m, value);
    finish();
    struct {
        double begin, posted, has_data, waited;
    } mine = {begin, posted, arrived > 0 ? arrived : end, waited}, theirs;
    exchange(&mine, &theirs, sizeof mine);
    int is_in_order = is_late(m, rank) ? mine.begin > theirs.posted : theirs.begin > mine.posted;
    double both = mine.begin > theirs.begin ? mine.begin : theirs.begin;
    double from = posted > both ? posted : both, has_data = rank == RECEIVER ? mine.has_data : theirs.has_data;
    return (struct timing){.worked_us = worked > from ? worked - from : 0,
                           .until_end_us = end - both,
                           .after_work_us = end - (worked > both ? worked : both),
                           .latency_us = has_data > both ? has_data - both : 0,
                           .waited_us = mine.waited + theirs.waited + (is_in_order ? 0 : OUT_OF_ORDER_US)};
}

/* --- many --------------------------------------------------------------------------------------------------------- */

/* One member of all timings. */
static struct spread spread_of_member(const struct timing *timings, int count, size_t offset)
{
    double values[MOST_REPETITIONS];
    for (int i = 0; i < count; i++)
        memcpy(&values[i], (const char *)&timings[i] + offset, sizeof(double));
    return spread_of(values, count);
}

/* Beyond 0 and 100 % there is noise only. */
static struct spread percent_spread(const struct timing *timings, int count, double l0_us)
{
    double values[MOST_REPETITIONS];
    for (int i = 0; i < count; i++)
        values[i] = within(100 * (timings[i].worked_us - (timings[i].until_end_us - l0_us)) / l0_us, 0, 100);
    return spread_of(values, count);
}

struct step {
    struct spread until_end, overlap, after_work;
    double worked_us, latency_us;
};

static int compare_waited(const void *a, const void *b)
{
    return compare_doubles(&((const struct timing *)a)->waited_us, &((const struct timing *)b)->waited_us);
}

static int kept, disturbed; /* of all messages of a row */

/* So many messages, the least disturbed of those that were sent. Both ranks know alike which were disturbed. */
static void time_messages(const struct measured *m, double work_us, struct timing *timings, int count)
{
    int sent = 0, good = 0;
    while (good < count && sent < TRIALS_OF_ONE * count) {
        timings[sent] = time_message(m, work_us);
        good += timings[sent++].waited_us <= most_waited_us(m->bytes);
    }
    qsort(timings, (size_t)sent, sizeof *timings, compare_waited);
    kept += count;
    disturbed += count - good;
}

/* Both ranks get what the side in question measured; l0_us is 0 for the step that finds it. */
static struct step measure(const struct measured *m, double work_us, double l0_us)
{
    static struct timing timings[TRIALS_OF_ONE * MOST_REPETITIONS];
    int count = m->benchmark->repetitions;
    time_messages(m, work_us, timings, count);
    struct step mine = {.until_end = spread_of_member(timings, count, offsetof(struct timing, until_end_us)),
                        .after_work = spread_of_member(timings, count, offsetof(struct timing, after_work_us)),
                        .worked_us = spread_of_member(timings, count, offsetof(struct timing, worked_us)).median,
                        .latency_us = spread_of_member(timings, count, offsetof(struct timing, latency_us)).median};
    mine.overlap = percent_spread(timings, count, l0_us > 0 ? l0_us : mine.until_end.median);
    struct step theirs;
    exchange(&mine, &theirs, sizeof mine);
    return rank == working_rank(m) ? mine : theirs;
}

/* The last step whose time does not exceed 1.1 l0; one that does is tried again before it is believed. */
static void search(const struct measured *m, double l0, struct row *row)
{
    for (int tenths = 1; tenths <= MOST_TENTHS; tenths++) {
        struct step step = measure(m, tenths * l0 / 10, l0);
        if (step.until_end.median > 1.1 * l0)
            step = measure(m, tenths * l0 / 10, l0);
        if (tenths == 10)
            row->achieved = step.overlap;
        if (step.until_end.median <= 1.1 * l0)
            row->overlap = step.overlap;
    }
}

/* Where l0 is another one after the search, others had the processors meanwhile, and the search begins again. */
static void find_overlap(const struct measured *m, struct row *row)
{
    struct step later = measure(m, 0, 0), start;
    double ratio = 0;
    for (int i = 0; i < SEARCHES && (ratio < 1 / 1.15 || ratio > 1.15); i++) {
        start = later;
        row->l0 = start.until_end;
        row->overlap = start.overlap;
        search(m, start.until_end.median, row);
        later = measure(m, 0, 0);
        ratio = later.until_end.median / start.until_end.median;
    }
}

static struct spread in_percent(struct spread of, double whole)
{
    return (struct spread){100 * of.median / whole, 100 * of.low / whole, 100 * of.high / whole};
}

/* Of delays that are longer than the transfer: by how much of the delay the data are later, and what is left to do after it. */
static void find_progress(const struct measured *m, struct row *row)
{
    double l0 = row->l0.median;
    struct step shorter = measure(m, 2 * l0, l0), longer = measure(m, 4 * l0, l0);
    double growth = (longer.latency_us - shorter.latency_us) / (longer.worked_us - shorter.worked_us);
    row->growth_percent = within(100 * growth, 0, 100);
    row->left = in_percent(longer.after_work, l0);
}

/* --- tables ------------------------------------------------------------------------------------------------------- */

static void print_row(const struct measured *m, const struct row *row)
{
    print_count(m->bytes);
    print_spread(row->l0);
    print_spread(row->overlap);
    print_spread(row->achieved);
    print_value(row->growth_percent);
    print_spread(row->left);
    print_value(row->disturbed_percent);
    end_row();
    fflush(stdout);
    if (m->benchmark->tsv)
        fprintf(m->benchmark->tsv, "%s\t%s\t%s\t%zu\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\n", protocol_names[m->protocol],
                first_names[m->first], side_names[m->side], m->bytes, row->l0.median, row->overlap.median, row->achieved.median,
                row->growth_percent, row->left.median, row->disturbed_percent);
}

static void measure_table(struct measured m)
{
    if (rank == 0) {
        printf("table speculative protocol=%s first=%s side=%s\n", protocol_names[m.protocol], first_names[m.first],
               side_names[m.side]);
        print_columns("bytes l0_us* overlap_percent* achieved_percent* growth_percent left_percent* disturbed_percent");
    }
    for (int i = 0; i < m.benchmark->size_count; i++) {
        struct row row;
        m.bytes = m.benchmark->sizes[i];
        m.buffer = malloc(m.bytes);
        if (!m.buffer)
            fail("no memory for %zu bytes", m.bytes);
        start_layer(&(struct settings){m.protocol, m.benchmark->eager_bytes});
        time_message(&m, 0); /* its pages are there then */
        kept = disturbed = 0;
        find_overlap(&m, &row);
        find_progress(&m, &row);
        row.disturbed_percent = 100.0 * disturbed / kept;
        if (rank == 0)
            print_row(&m, &row);
        free(m.buffer);
    }
    if (rank == 0)
        printf("\n");
}

/* How much work a microsecond is while both compute, the same for both. */
static void calibrate_work(void)
{
    enum { ROUNDS = 400000, TRIALS = 9 };
    double best = 1e30, theirs;
    for (int trial = 0; trial < TRIALS; trial++) {
        start_together();
        double begin = now_us();
        do_rounds(ROUNDS);
        double took = now_us() - begin;
        best = took < best ? took : best;
    }
    exchange(&best, &theirs, sizeof best);
    rounds_per_us = ROUNDS / (best < theirs ? best : theirs);
}

void run_benchmark(const struct benchmark *b)
{
    calibrate_work();
    if (b->tsv && rank == 0)
        fprintf(b->tsv, "protocol\tfirst\tside\tbytes\tl0_us\toverlap_percent\tachieved_percent\tgrowth_percent\tleft_percent\tdisturbed_percent\n");
    for (enum protocol protocol = b->first_protocol; protocol <= b->last_protocol; protocol++)
        for (int first = b->first_scenario; first <= b->last_scenario; first++)
            for (int side = b->first_side; side <= b->last_side; side++)
                measure_table((struct measured){
                    .benchmark = b, .protocol = protocol, .first = (enum first)first, .side = (enum side)side});
}
