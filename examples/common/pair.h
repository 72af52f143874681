/*
 * What experiments share in which one process sends and another receives, and one of both computes meanwhile.
 */
#ifndef PAIR_H
#define PAIR_H

#include "experiment.h"

#define MOST_SIZES 32

enum { SENDER, RECEIVER };                                  /* ranks */
enum { SIDE_SEND, SIDE_RECEIVE, SIDES };                    /* whose communication is non-blocking */
enum { NOBODY_FIRST, SENDER_FIRST, RECEIVER_FIRST, FIRSTS }; /* who posts first on purpose */

/* By how much the other one of two processes is first, where it is on purpose: enough for what it announces to arrive. */
#define LATE_US 500.0

static const char *const side_names[] = {"send", "receive"};
static const char *const first_names[] = {"none", "sender", "receiver"};

static inline int posts_late(int rank, int first)
{
    return (first == SENDER_FIRST && rank == RECEIVER) || (first == RECEIVER_FIRST && rank == SENDER);
}

static inline void need_two_ranks(const char *program)
{
    if (size_of(MPI_COMM_WORLD) != 2)
        give_up(program, "it measures two processes; start it with mpirun -n 2");
}

/* --- both start together ------------------------------------------------------------------------------------------ */

/*
 * How long a link rests between messages. One that a token bucket limits (traffic shaping, clouds) lets a burst pass at full
 * speed when it was idle: a message after a long computation would find that, one after a short computation would not, and
 * the difference would look like overlap. So warm_ups() messages one after the other empty such a bucket, and after that
 * each message has the rest that it takes to fill it again by as much as one message takes out: all find the same.
 */
static inline int warm_ups(size_t bytes)
{
    enum { BUCKET_BYTES = 1 << 20, FEWEST = 4 };
    int count = (int)(BUCKET_BYTES / bytes);
    return count > FEWEST ? count : FEWEST;
}

/* `took_us` is what the warm-ups took all together; both ranks get the same. */
static inline double rest_us(double took_us, size_t bytes)
{
    MPI_Allreduce(MPI_IN_PLACE, &took_us, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return 1.5 * took_us / warm_ups(bytes);
}

/* After a rest, both leave this at about the same time: a barrier lets one go a little before the other, and is over then. */
static inline void start_together(double rest)
{
    compute(rest);
    MPI_Barrier(MPI_COMM_WORLD);
    compute(20);
}

/* How far the other's clock is ahead of this one: 0 on one machine, else from the quickest of several questions. */
static inline double clock_ahead_us(void)
{
    enum { QUESTIONS = 40 };
    MPI_Comm machine;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &machine);
    int together = size_of(machine) == size_of(MPI_COMM_WORLD), rank = rank_in(MPI_COMM_WORLD);
    MPI_Comm_free(&machine);
    double ahead = 0, quickest = 1e30;
    for (int i = 0; i < QUESTIONS && !together; i++) {
        double asked = now_us(), theirs = asked;
        if (rank == 0)
            MPI_Send(NULL, 0, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
        else
            MPI_Recv(NULL, 0, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (rank == 1) {
            theirs = now_us();
            MPI_Send(&theirs, 1, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD);
            continue;
        }
        MPI_Recv(&theirs, 1, MPI_DOUBLE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        double answered = now_us();
        if (answered - asked < quickest) {
            quickest = answered - asked;
            ahead = theirs - (asked + answered) / 2;
        }
    }
    MPI_Bcast(&ahead, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    return rank == 0 ? ahead : -ahead;
}

/* Tells the other process of a moment here; returns its moment, by the clock of this one. */
static inline double exchange_moment(double mine, double ahead_us)
{
    double theirs;
    int other = 1 - rank_in(MPI_COMM_WORLD);
    MPI_Sendrecv(&mine, 1, MPI_DOUBLE, other, 0, &theirs, 1, MPI_DOUBLE, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return theirs - ahead_us;
}

/* --- one message -------------------------------------------------------------------------------------------------- */

/* What is measured: messages of a size, of which one side is non-blocking. */
struct pair {
    int side, first;
    int looks; /* how often the receiver looks during its work whether the message is there */
    size_t bytes;
    char *buffer;
    double ahead_us; /* the other's clock */
    double rest;     /* before each message, in us */
};

/* Of one message on one rank, by its own clock. */
struct moments {
    double both_posted;
    double begin, posted, worked, end;
    double arrived; /* when the receiver saw the last byte during its work; 0: it did not */
};

static inline struct pair make_pair(int side, int first, int looks, size_t bytes)
{
    return (struct pair){side, first, looks, bytes, make_buffer(bytes), clock_ahead_us(), 0};
}

/* The rank whose communication is non-blocking. */
static inline int working_rank(const struct pair *p)
{
    return p->side == SIDE_SEND ? SENDER : RECEIVER;
}

static inline void communicate_blocking(const struct pair *p, int tag)
{
    if (rank_in(MPI_COMM_WORLD) == SENDER)
        MPI_Ssend(p->buffer, (int)p->bytes, MPI_BYTE, RECEIVER, tag, MPI_COMM_WORLD);
    else
        MPI_Recv(p->buffer, (int)p->bytes, MPI_BYTE, SENDER, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static inline void post(const struct pair *p, int tag, MPI_Request *request)
{
    if (rank_in(MPI_COMM_WORLD) == SENDER)
        MPI_Issend(p->buffer, (int)p->bytes, MPI_BYTE, RECEIVER, tag, MPI_COMM_WORLD, request);
    else
        MPI_Irecv(p->buffer, (int)p->bytes, MPI_BYTE, SENDER, tag, MPI_COMM_WORLD, request);
}

/* Returns when the last byte was there, 0 when it was not. No message has a byte of 0. */
static inline double compute_and_look(const struct pair *p, double us)
{
    volatile const char *last = &p->buffer[p->bytes - 1];
    double arrived = 0;
    for (int i = 0; i < p->looks; i++) {
        compute(us / p->looks);
        if (!arrived && *last)
            arrived = now_us();
    }
    return arrived;
}

/*
 * One message, and so much work on the non-blocking side after both have posted. Where that side is first on purpose it
 * works also as long as the other is late; with no work it waits at once.
 */
static inline struct moments transfer(const struct pair *p, double work_us, int tag)
{
    static int number;
    int rank = rank_in(MPI_COMM_WORLD);
    double until_other_posts = posts_late(1 - rank, p->first) ? LATE_US : 0;
    MPI_Request request;
    struct moments m = {0, 0, 0, 0, 0, 0};
    number++;
    if (rank == SENDER)
        fill_message(p->buffer, p->bytes, number);
    else
        memset(p->buffer, 0, p->bytes);

    start_together(p->rest);
    if (posts_late(rank, p->first))
        compute(LATE_US);
    m.begin = m.posted = m.worked = now_us();
    if (rank == working_rank(p)) {
        post(p, tag, &request);
        m.posted = now_us();
        if (work_us > 0 && rank == RECEIVER && p->looks)
            m.arrived = compute_and_look(p, until_other_posts + work_us);
        else if (work_us > 0)
            compute(until_other_posts + work_us);
        m.worked = now_us();
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else
        communicate_blocking(p, tag);
    m.end = now_us();

    if (rank == RECEIVER)
        check_message(p->buffer, p->bytes, number);
    double other = exchange_moment(m.begin, p->ahead_us);
    m.both_posted = m.begin > other ? m.begin : other;
    return m;
}

/* How long it worked since both had posted. */
static inline double worked_us(const struct moments *m)
{
    double begin = m->posted > m->both_posted ? m->posted : m->both_posted;
    return m->worked > begin ? m->worked - begin : 0;
}

/* With a little work in each: who watches from outside is not to take what these take for what a message takes alone. */
static inline void warm_up(struct pair *p)
{
    enum { WORK_US = 20 };
    double begin = now_us();
    for (int i = 0; i < warm_ups(p->bytes); i++)
        transfer(p, WORK_US, 0);
    p->rest = rest_us(now_us() - begin, p->bytes);
}

/* --- options ------------------------------------------------------------------------------------------------------ */

static const char pair_options_help[] =
    "  -b SIZES        bytes of the messages, such as 1K,64K,1M\n"
    "  -r REPETITIONS  of everything, 1 to 1001\n"
    "  -d SIDE         send or receive: the side that computes meanwhile (both, one after the other)\n"
    "  -a FIRST        none, sender or receiver: who posts first on purpose (none)\n";

struct pair_options {
    size_t sizes[MOST_SIZES];
    int size_count, repetitions, side, first; /* side SIDES: both */
};

static inline void read_pair_option(const char *program, int option, struct pair_options *o)
{
    switch (option) {
    case 'b':
        o->size_count = read_sizes(optarg, o->sizes, MOST_SIZES);
        if (!sizes_fit(o->sizes, o->size_count))
            refuse_option(program, option, optarg, "up to 32 sizes of 1 byte to 2 GB, such as 1K,64K,1M");
        break;
    case 'r':
        if (!read_count(optarg, 1, MOST_REPETITIONS, &o->repetitions))
            refuse_option(program, option, optarg, "a number of repetitions from 1 to 1001");
        break;
    case 'd':
        o->side = index_of_name(optarg, side_names, SIDES);
        if (o->side < 0)
            refuse_option(program, option, optarg, "send or receive");
        break;
    case 'a':
        o->first = index_of_name(optarg, first_names, FIRSTS);
        if (o->first < 0)
            refuse_option(program, option, optarg, "none, sender or receiver");
        break;
    default: refuse_option(program, optopt, NULL, NULL);
    }
}

/* Returns 0 when help is all that is wanted. */
static inline int read_pair_options(int argc, char **argv, const char *program, struct pair_options *o)
{
    int option;
    opterr = 0;
    while ((option = getopt(argc, argv, "b:r:d:a:h")) != -1) {
        if (option == 'h')
            return 0;
        read_pair_option(program, option, o);
    }
    refuse_words(program, argc);
    return 1;
}

/* MPI_Init, options, `run` for each side that is wanted, MPI_Finalize. */
static inline int run_pair(int argc, char **argv, const char *program, const char *about, int repetitions, const char *sizes,
                           void (*run)(const struct pair_options *, int side))
{
    struct pair_options o = {.repetitions = repetitions, .side = SIDES};
    MPI_Init(&argc, &argv);
    o.size_count = read_sizes(sizes, o.sizes, MOST_SIZES);
    if (read_pair_options(argc, argv, program, &o)) {
        need_two_ranks(program);
        calibrate_work();
        for (int side = 0; side < SIDES; side++)
            if (o.side == side || o.side == SIDES)
                run(&o, side);
    } else {
        print_help(about);
        print_help(pair_options_help);
    }
    MPI_Finalize();
    return 0;
}

#endif
