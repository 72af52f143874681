/*
 * A stencil whose wait stands too early, and the same with its wait where it could be: one step in [SA06]'s "order of loops".
 *
 *   before   post the halo exchange, wait for it, update the inner rows, update the border rows
 *   after    post the halo exchange, update the inner rows, wait for it, update the border rows
 *
 * Inner rows need nothing of the halo: `lapscope reach` of the first form says that the wait could be that much later, and names the
 * line that touches the halo first. Both forms compute the same. What moving the wait gains is what goes on without MPI: each
 * halo is sent as messages below the eager limit of MPI over TCP (-b), which the kernel transfers; larger ones need tests
 * in between (LAPSCOPE_INJECT=timer, or an MPI with a thread of its own).
 */
#include "../common/experiment.h"

enum form { BEFORE, AFTER, FORMS };
enum { FIRST_TAG = 320, UP = 0, DOWN = 100, STRIP = 512 };

static const char *const form_names[FORMS] = {"before", "after"};

static const char help[] =
    "stencil [-f FORM] [-x CELLS] [-y ROWS] [-b BYTES] [-t US] [-i ITERATIONS]\n"
    "  -f  before, after, or all: both in turn                        (before)\n"
    "  -x  cells of a row, 8 bytes each                               (32768)\n"
    "  -y  rows of a rank                                             (16)\n"
    "  -b  size of a message; a row is sent as several where it is larger (32K)\n"
    "  -t  microseconds of work in all inner rows                     (5000)\n"
    "  -i  measured iterations of each form                           (100)\n";

struct options {
    int first, last; /* forms */
    int nx, ny, work_us, iterations;
    size_t message; /* bytes */
};

enum part { ITERATION, POST, WAIT, INNER, PARTS };

struct block {
    double *now, *next; /* ny + 2 rows: the first and last are the halo */
    MPI_Request *requests;
    int messages; /* of a row */
    int up, down; /* ranks */
    double us[PARTS];
    double measured[PARTS][MOST_REPETITIONS];
};

static struct options options = {BEFORE, BEFORE, 32768, 16, 5000, 100, 32768};
static int steps; /* of reaction on a cell */

static double *row_of(double *field, int y)
{
    return &field[(size_t)y * (size_t)options.nx];
}

/* --- computation -------------------------------------------------------------------------------------------------- */

#define SITE static __attribute__((noinline))

static inline void react(double *cells, int count)
{
    for (int step = 0; step < steps; step++)
        for (int x = 0; x < count; x++)
            cells[x] += 1e-3 * cells[x] * (1.0 - cells[x]);
}

SITE void update_inner(struct block *b)
{
    for (int y = 2; y < options.ny; y++) {
        const double *above = row_of(b->now, y - 1), *row = row_of(b->now, y), *below = row_of(b->now, y + 1);
        double *out = row_of(b->next, y);
        for (int begin = 0; begin < options.nx; begin += STRIP) {
            int end = begin + STRIP < options.nx ? begin + STRIP : options.nx;
            for (int x = begin; x < end; x++)
                out[x] = row[x] + 0.1 * (above[x] + below[x] - 2.0 * row[x]);
            react(&out[begin], end - begin);
        }
    }
}

SITE void update_border(struct block *b, int y, int halo, int inner)
{
    const double *restrict outside = row_of(b->now, halo), *restrict row = row_of(b->now, y);
    const double *restrict inside = row_of(b->now, inner);
    double *restrict out = row_of(b->next, y);
    for (int x = 0; x < options.nx; x++)
        out[x] = row[x] + 0.1 * (outside[x] + inside[x] - 2.0 * row[x]); /* reach: border */
}

static void update_borders(struct block *b)
{
    update_border(b, 1, 0, 2);
    update_border(b, options.ny, options.ny + 1, options.ny - 1);
}

/* --- communication ------------------------------------------------------------------------------------------------ */

static int cells_of_message(void)
{
    return (int)(options.message / sizeof(double));
}

static int cells_in(int message)
{
    int rest = options.nx - message * cells_of_message();
    return rest < cells_of_message() ? rest : cells_of_message();
}

SITE void post_exchange(struct block *b)
{
    MPI_Request *next = b->requests;
    for (int m = 0; m < b->messages; m++) {
        int x = m * cells_of_message(), count = cells_in(m), tag = FIRST_TAG + m;
        MPI_Irecv(&row_of(b->now, 0)[x], count, MPI_DOUBLE, b->up, tag + DOWN, MPI_COMM_WORLD, next++);
        MPI_Irecv(&row_of(b->now, options.ny + 1)[x], count, MPI_DOUBLE, b->down, tag + UP, MPI_COMM_WORLD, next++);
    }
    for (int m = 0; m < b->messages; m++) {
        int x = m * cells_of_message(), count = cells_in(m), tag = FIRST_TAG + m;
        MPI_Isend(&row_of(b->now, 1)[x], count, MPI_DOUBLE, b->up, tag + UP, MPI_COMM_WORLD, next++);
        MPI_Isend(&row_of(b->now, options.ny)[x], count, MPI_DOUBLE, b->down, tag + DOWN, MPI_COMM_WORLD, next++);
    }
}

static void post(struct block *b)
{
    double begin = now_us();
    post_exchange(b);
    b->us[POST] = now_us() - begin;
}

static void wait(struct block *b)
{
    double begin = now_us();
    MPI_Waitall(4 * b->messages, b->requests, MPI_STATUSES_IGNORE);
    b->us[WAIT] = now_us() - begin;
}

static void update(struct block *b)
{
    double begin = now_us();
    update_inner(b);
    b->us[INNER] = now_us() - begin;
}

SITE void iterate_before(struct block *b)
{
    post(b);
    wait(b); /* reach: too early */
    update(b);
    update_borders(b);
}

SITE void iterate_after(struct block *b)
{
    post(b);
    update(b);
    wait(b); /* reach: where it could be */
    update_borders(b);
}

/* Ranks begin together: what one form lets a rank wait for is not to be paid by the other. */
static void iterate(struct block *b, int form, int iteration)
{
    MPI_Barrier(MPI_COMM_WORLD);
    double begin = now_us();
    (form == BEFORE ? iterate_before : iterate_after)(b);
    b->us[ITERATION] = now_us() - begin;
    double *swap = b->now;
    b->now = b->next;
    b->next = swap;
    for (int part = 0; iteration >= 0 && part < PARTS; part++)
        b->measured[part][iteration] = b->us[part];
}

/* --- before and after --------------------------------------------------------------------------------------------- */

static void fill(double *field)
{
    for (int i = 0; i < (options.ny + 2) * options.nx; i++)
        field[i] = 0.5 + 0.25 * (i % 1021) / 1021;
}

static void make_block(struct block *b)
{
    size_t bytes = (size_t)(options.ny + 2) * (size_t)options.nx * sizeof(double);
    int rank = rank_in(MPI_COMM_WORLD), ranks = size_of(MPI_COMM_WORLD);
    b->up = (rank + ranks - 1) % ranks;
    b->down = (rank + 1) % ranks;
    b->messages = (options.nx + cells_of_message() - 1) / cells_of_message();
    b->requests = (MPI_Request *)make_buffer(4 * (size_t)b->messages * sizeof(MPI_Request));
    b->now = (double *)make_buffer(bytes);
    b->next = (double *)make_buffer(bytes);
}

static void free_block(struct block *b)
{
    free(b->requests);
    free(b->now);
    free(b->next);
}

/* Reaction steps that make the inner rows take the time that is wanted, the same on all ranks. */
static void calibrate(struct block *b)
{
    enum { STEPS = 8, TRIALS = 5 };
    double best = 1e30;
    steps = STEPS;
    for (int trial = 0; trial < TRIALS; trial++) {
        MPI_Barrier(MPI_COMM_WORLD);
        double begin = now_us();
        update_inner(b);
        double took = now_us() - begin;
        best = took < best ? took : best;
    }
    MPI_Allreduce(MPI_IN_PLACE, &best, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    steps = (int)(STEPS * options.work_us / best) + 1;
}

static double checksum(struct block *b)
{
    double sum = 0, all;
    for (int i = options.nx; i < (options.ny + 1) * options.nx; i++)
        sum += b->now[i];
    MPI_Allreduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return all;
}

static void print_form(const struct block *b, int form, double sum)
{
    printf("table stencil form=%s ranks=%d\n", form_names[form], size_of(MPI_COMM_WORLD));
    print_columns("bytes messages steps iteration_us* post_us* wait_us* inner_us* sum");
    print_count((size_t)options.nx * sizeof(double));
    print_count((size_t)b->messages);
    print_count((size_t)steps);
    for (int part = 0; part < PARTS; part++)
        print_spread(spread_of(b->measured[part], options.iterations));
    print_value(sum);
    end_row();
}

static void run(struct block blocks[FORMS])
{
    enum { WARM_UPS = 3 };
    fill(blocks[0].now);
    calibrate(&blocks[0]);
    for (int form = options.first; form <= options.last; form++) {
        fill(blocks[form].now);
        fill(blocks[form].next);
    }
    for (int iteration = -WARM_UPS; iteration < options.iterations; iteration++)
        for (int form = options.first; form <= options.last; form++)
            iterate(&blocks[form], form, iteration);
    for (int form = options.first; form <= options.last; form++) {
        double sum = checksum(&blocks[form]);
        if (rank_in(MPI_COMM_WORLD) == 0)
            print_form(&blocks[form], form, sum);
    }
}

static void read_number(int option, int least, int most, int *number)
{
    char takes[64];
    snprintf(takes, sizeof takes, "a number from %d to %d", least, most);
    if (!read_count(optarg, least, most, number))
        refuse_option("stencil", option, optarg, takes);
}

/* Returns 0 when help is all that is wanted. */
static int read_options(int argc, char **argv)
{
    struct options *o = &options;
    int option;
    opterr = 0;
    while ((option = getopt(argc, argv, "f:x:y:b:t:i:h")) != -1)
        switch (option) {
        case 'f':
            if (!read_forms(optarg, form_names, FORMS, &o->first, &o->last))
                refuse_option("stencil", option, optarg, "before, after or all");
            break;
        case 'b':
            if (read_sizes(optarg, &o->message, 1) != 1 || o->message < sizeof(double))
                refuse_option("stencil", option, optarg, "a size of 8 bytes or more, such as 32K");
            break;
        case 'x': read_number(option, 2, 1 << 24, &o->nx); break;
        case 'y': read_number(option, 3, 10000, &o->ny); break;
        case 't': read_number(option, 1, 1000000, &o->work_us); break;
        case 'i': read_number(option, 1, MOST_REPETITIONS, &o->iterations); break;
        case 'h': return 0;
        default: refuse_option("stencil", optopt, NULL, NULL);
        }
    refuse_words("stencil", argc);
    if (options.nx / cells_of_message() >= DOWN)
        give_up("stencil", "a row is sent as fewer than 100 messages: -b larger, or -x smaller");
    return 1;
}

int main(int argc, char **argv)
{
    static struct block blocks[FORMS];
    MPI_Init(&argc, &argv);
    if (read_options(argc, argv)) {
        for (int form = 0; form < FORMS; form++)
            make_block(&blocks[form]);
        run(blocks);
        for (int form = 0; form < FORMS; form++)
            free_block(&blocks[form]);
    } else
        print_help(help);
    MPI_Finalize();
    return 0;
}
