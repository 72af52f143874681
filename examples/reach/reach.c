/*
 * Programs whose reach is known: how much earlier each word of a send could be posted, how much later each word of a receive
 * could be waited for. The words are those of [SA06] (examples/README.md): T_P and T_C, work on a word that is produced and
 * consumed; P(i) and C(i), the orders in which that is done; T_AP and T_AC, work that needs neither, behind production and before
 * consumption.
 *
 *   concurrent   produce all words, T_AP, exchange with the neighbours in a ring, T_AC, consume all words
 *   pipelined    take words from the rank before, make of each the word of the next rank, hand them on
 *
 * So word i of a send is written T_AP + T_P (N - P(i) - 1) before its post, and word i of a receive is touched T_AC + T_C C(i)
 * after its wait. Work on a word begins with reading it, and ends with writing it, as each needs the other. The lines that do it
 * are marked.
 */
#include "../common/experiment.h"

enum kernel { CONCURRENT, PIPELINED, KERNELS };
enum order { SAME, REVERSE, RANDOM, ORDERS };
enum { VECTOR_WORDS = 64 }; /* that are read at once where whole vectors are consumed */
enum { STRIDE = 3 };        /* of the column that words are packed from and unpacked into */
enum { TAG = 300, WARM_UPS = 3 };

static const char *const kernel_names[KERNELS] = {"concurrent", "pipelined"};
static const char *const order_names[ORDERS] = {"same", "reverse", "random"};

static const char help[] =
    "reach [-k KERNEL] [-n WORDS] [-i ITERATIONS] [-P NS] [-C NS] [-p US] [-c US] [-o ORDER] [-t ORDER] [-w WRITES] [-abv]\n"
    "  -k  concurrent or pipelined                                      (concurrent)\n"
    "  -n  words of 8 bytes in a message                                (2048)\n"
    "  -i  measured iterations                                          (200)\n"
    "  -P  T_P: nanoseconds of work that produce a word                 (500)\n"
    "  -C  T_C: nanoseconds of work that consume a word                 (300)\n"
    "  -p  T_AP: microseconds of other work between production and post (400)\n"
    "  -c  T_AC: microseconds of other work between wait and consumption (250)\n"
    "  -o  order in which words are produced: same, reverse, random     (same)\n"
    "  -t  order in which they are consumed (touched)                   (same)\n"
    "  -w  how often each word is written                               (1)\n"
    "  -a  produce into a column of an array, pack it; unpack into one, consume that\n"
    "  -b  blocking MPI_Send and MPI_Recv\n"
    "  -v  consume whole vectors of 64 words\n";

struct options {
    int kernel, words, iterations, produce_ns, consume_ns, before_us, after_us, produced, consumed, writes;
    int packed, blocking, vectors;
};

static struct options options = {CONCURRENT, 2048, 200, 500, 300, 400, 250, SAME, SAME, 1, 0, 0, 0};

/* What is measured of each iteration, in nanoseconds. */
enum part { T_P, T_C, T_AP, T_AC, PARTS };

struct words {
    int count;
    int *produced, *consumed; /* numbers of words in the order in which that is done; of vectors, where these are consumed */
    double *out, *in;         /* messages */
    double *made, *used;      /* columns of arrays, or the messages themselves */
    int stride;               /* of these columns */
    double *field;            /* what vectors are added to */
    double sum;               /* of what was consumed */
    double measured[PARTS][MOST_REPETITIONS];
};

static int rank, ranks;

static int rounds_of(double ns)
{
    return (int)(ns * 1e-3 * rounds_per_us) + 1;
}

/* Work that begins with a word from 0 to 1, and ends with one. */
static inline double work_on(double word, int rounds)
{
    double x = 0.25 + 0.5 * word;
    for (int i = 0; i < rounds; i++)
        x = 3.7 * x * (1.0 - x);
    return x;
}

/* From 0 to 1; other words, ranks and iterations have others. */
static inline double seed_of(int word, int iteration)
{
    int64_t number = (word + 1) * INT64_C(16807) + (rank + 1) * INT64_C(7919) + (iteration + WARM_UPS) * INT64_C(104729);
    return (double)(number % 1000003) / 1000003;
}

/* --- concurrent --------------------------------------------------------------------------------------------------- */

#define SITE static __attribute__((noinline))

SITE void produce(struct words *w, int iteration)
{
    int rounds = rounds_of(options.produce_ns);
    for (int time = 0; time < options.writes; time++)
        for (int k = 0; k < w->count; k++) {
            int i = w->produced[k];
            w->made[i * w->stride] = work_on(seed_of(i, iteration), rounds); /* reach: last write */
        }
}

SITE void consume(struct words *w)
{
    int rounds = rounds_of(options.consume_ns);
    for (int k = 0; k < w->count; k++) {
        int i = w->consumed[k];
        w->sum += work_on(w->used[i * w->stride], rounds); /* reach: first touch */
    }
}

SITE void consume_vectors(struct words *w)
{
    int rounds = rounds_of((double)options.consume_ns * VECTOR_WORDS);
    for (int k = 0; k < w->count / VECTOR_WORDS; k++) {
        const double *in = &w->in[w->consumed[k] * VECTOR_WORDS];
        double *restrict field = w->field;
        for (int i = 0; i < VECTOR_WORDS; i++)
            field[i] = 0.5 * field[i] + 0.5 * in[i]; /* reach: first touch of a vector */
        w->sum += work_on(field[0], rounds);
    }
}

SITE void pack(struct words *w)
{
    for (int i = 0; i < w->count; i++)
        w->out[i] = w->made[i * STRIDE]; /* reach: pack */
}

SITE void unpack(struct words *w)
{
    for (int i = 0; i < w->count; i++)
        w->used[i * STRIDE] = w->in[i]; /* reach: unpack */
}

SITE void exchange(struct words *w)
{
    int to = (rank + 1) % ranks, from = (rank + ranks - 1) % ranks;
    MPI_Request requests[2];
    MPI_Irecv(w->in, w->count, MPI_DOUBLE, from, TAG, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(w->out, w->count, MPI_DOUBLE, to, TAG, MPI_COMM_WORLD, &requests[1]); /* reach: post */
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);                                   /* reach: wait */
}

/* Every other rank receives first: a send may wait for its receiver. */
SITE void exchange_blocking(struct words *w)
{
    int to = (rank + 1) % ranks, from = (rank + ranks - 1) % ranks;
    if (rank % 2 == 0)
        MPI_Send(w->out, w->count, MPI_DOUBLE, to, TAG, MPI_COMM_WORLD);
    MPI_Recv(w->in, w->count, MPI_DOUBLE, from, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank % 2 == 1)
        MPI_Send(w->out, w->count, MPI_DOUBLE, to, TAG, MPI_COMM_WORLD);
}

static void iterate(struct words *w, int iteration)
{
    double begin = now_us();
    produce(w, iteration);
    double produced = now_us();
    do_rounds(rounds_of(options.before_us * 1e3));
    if (options.packed)
        pack(w);
    double ready = now_us();
    (options.blocking ? exchange_blocking : exchange)(w);
    double complete = now_us();
    if (options.packed)
        unpack(w);
    do_rounds(rounds_of(options.after_us * 1e3));
    double needed = now_us();
    (options.vectors ? consume_vectors : consume)(w);
    double end = now_us();
    if (iteration < 0)
        return;
    w->measured[T_P][iteration] = (produced - begin) * 1e3 / w->count / options.writes;
    w->measured[T_AP][iteration] = (ready - produced) * 1e3;
    w->measured[T_AC][iteration] = (needed - complete) * 1e3;
    w->measured[T_C][iteration] = (end - needed) * 1e3 / w->count;
}

/* --- pipelined ---------------------------------------------------------------------------------------------------- */

SITE void pass_on(struct words *w)
{
    int rounds = rounds_of(options.produce_ns);
    for (int k = 0; k < w->count; k++) {
        int i = w->produced[k];
        w->out[i] = work_on(w->in[i], rounds); /* reach: pipelined word */
    }
}

static void iterate_pipeline(struct words *w, int iteration)
{
    if (rank > 0)
        MPI_Recv(w->in, w->count, MPI_DOUBLE, rank - 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else
        w->in[0] = seed_of(0, iteration);
    double begin = now_us();
    pass_on(w);
    double end = now_us();
    if (rank + 1 < ranks)
        MPI_Send(w->out, w->count, MPI_DOUBLE, rank + 1, TAG, MPI_COMM_WORLD);
    w->sum += w->out[0] + w->out[w->count - 1];
    if (iteration < 0)
        return;
    for (int part = 0; part < PARTS; part++)
        w->measured[part][iteration] = part == T_P || part == T_C ? (end - begin) * 1e3 / w->count : 0;
}

/* --- before and after --------------------------------------------------------------------------------------------- */

static int *make_order(int kind, int count)
{
    int *order = (int *)make_buffer((size_t)count * sizeof *order);
    uint32_t state = 12345;
    for (int i = 0; i < count; i++)
        order[i] = kind == REVERSE ? count - 1 - i : i;
    for (int i = count - 1; kind == RANDOM && i > 0; i--) {
        state = state * 1664525u + 1013904223u;
        int other = (int)((state >> 8) % (uint32_t)(i + 1)), swap = order[i];
        order[i] = order[other];
        order[other] = swap;
    }
    return order;
}

static double *make_words(int count)
{
    return (double *)make_buffer((size_t)count * sizeof(double));
}

static void make(struct words *w)
{
    w->count = options.words;
    w->produced = make_order(options.produced, w->count);
    w->consumed = make_order(options.consumed, options.vectors ? w->count / VECTOR_WORDS : w->count);
    w->out = make_words(w->count);
    w->in = make_words(w->count);
    w->stride = options.packed ? STRIDE : 1;
    w->made = options.packed ? make_words(w->count * STRIDE) : w->out;
    w->used = options.packed ? make_words(w->count * STRIDE) : w->in;
    w->field = make_words(VECTOR_WORDS);
}

static void print_heading(void)
{
    printf("table reach kernel=%s produced=%s consumed=%s exchange=%s consumption=%s buffers=%s writes=%d\n",
           kernel_names[options.kernel], order_names[options.produced],
           order_names[options.kernel == PIPELINED ? options.produced : options.consumed],
           options.blocking || options.kernel == PIPELINED ? "blocking" : "nonblocking", options.vectors ? "vectors" : "words",
           options.packed ? "packed" : "direct", options.writes);
    print_columns("rank words iterations t_p_ns* t_c_ns* t_ap_ns* t_ac_ns* sum");
}

static void print_rows(const struct words *w)
{
    struct spread all[PARTS], of[PARTS];
    double sum;
    for (int part = 0; part < PARTS; part++)
        of[part] = all[part] = spread_of(w->measured[part], options.iterations);
    if (rank > 0) {
        MPI_Send(of, sizeof of, MPI_BYTE, 0, TAG + 1, MPI_COMM_WORLD);
        MPI_Send(&w->sum, 1, MPI_DOUBLE, 0, TAG + 1, MPI_COMM_WORLD);
        return;
    }
    print_heading();
    for (int from = 0; from < ranks; from++) {
        sum = w->sum;
        if (from > 0) {
            MPI_Recv(all, sizeof all, MPI_BYTE, from, TAG + 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Recv(&sum, 1, MPI_DOUBLE, from, TAG + 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
        print_count((size_t)from);
        print_count((size_t)w->count);
        print_count((size_t)options.iterations);
        for (int part = 0; part < PARTS; part++)
            print_spread(all[part]);
        print_value(sum);
        end_row();
    }
}

/* Whether it was a number; gives up when it is none that the option takes. */
static int read_number(int option, const char *letters, int least, int most, int *number)
{
    if (!strchr(letters, option))
        return 0;
    char takes[64];
    snprintf(takes, sizeof takes, "a number from %d to %d", least, most);
    if (!read_count(optarg, least, most, number))
        refuse_option("reach", option, optarg, takes);
    return 1;
}

static void read_name(int option, const char *const *names, int count, const char *takes, int *number)
{
    *number = index_of_name(optarg, names, count);
    if (*number < 0)
        refuse_option("reach", option, optarg, takes);
}

static void read_option(int option)
{
    struct options *o = &options;
    switch (option) {
    case 'a': o->packed = 1; return;
    case 'b': o->blocking = 1; return;
    case 'v': o->vectors = 1; return;
    case 'k': read_name(option, kernel_names, KERNELS, "concurrent or pipelined", &o->kernel); return;
    case 'o': read_name(option, order_names, ORDERS, "same, reverse or random", &o->produced); return;
    case 't': read_name(option, order_names, ORDERS, "same, reverse or random", &o->consumed); return;
    default: break;
    }
    if (!read_number(option, "n", 1, 1 << 24, &o->words) && !read_number(option, "i", 1, MOST_REPETITIONS, &o->iterations) &&
        !read_number(option, "P", 0, 1000000, &o->produce_ns) && !read_number(option, "C", 0, 1000000, &o->consume_ns) &&
        !read_number(option, "p", 0, 1000000, &o->before_us) && !read_number(option, "c", 0, 1000000, &o->after_us) &&
        !read_number(option, "w", 1, 1000, &o->writes))
        refuse_option("reach", optopt, NULL, NULL);
}

/* Returns 0 when help is all that is wanted. */
static int read_options(int argc, char **argv)
{
    int option;
    opterr = 0;
    while ((option = getopt(argc, argv, "k:n:i:P:C:p:c:o:t:w:abvh")) != -1) {
        if (option == 'h')
            return 0;
        read_option(option);
    }
    refuse_words("reach", argc);
    if (ranks < 2)
        give_up("reach", "it needs two ranks or more");
    if (options.vectors && (options.packed || options.words % VECTOR_WORDS))
        give_up("reach", "-v takes a number of words that 64 divides, and no -a");
    return 1;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    rank = rank_in(MPI_COMM_WORLD);
    ranks = size_of(MPI_COMM_WORLD);
    if (read_options(argc, argv)) {
        static struct words words;
        calibrate_work();
        make(&words);
        for (int iteration = -WARM_UPS; iteration < options.iterations; iteration++)
            (options.kernel == PIPELINED ? iterate_pipeline : iterate)(&words, iteration);
        note_crowding(MPI_COMM_WORLD);
        print_rows(&words);
    } else
        print_help(help);
    MPI_Finalize();
    return 0;
}
