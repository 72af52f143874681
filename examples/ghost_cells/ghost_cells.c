/*
 * Ghost-cell exchange of a ring of slabs whose load moves about, as refined regions of an adaptive mesh do: rank r is heavy
 * in step s when r + s is odd, else light. Messages as large as these travel when their receiver enters MPI. So a rank that
 * waits for each send where it posts it stands still until its heavy neighbour is through, and then has a heavy step of its
 * own before it: steps add up that could overlap. Two strategies against that ([SP04]), as forms of one program:
 *
 *   plain     waits for each send in the loop that sends
 *   test      (strategy 1) does so too, and calls MPI_Testall at some places of its computation
 *   waitall   (strategy 2) completes sends in the MPI_Waitall that ends receives
 *   both
 *
 * All compute the same. Receives are posted a step ahead: they are never late.
 */
#include "../common/experiment.h"

enum form { PLAIN, TEST, WAITALL, BOTH, FORMS };
enum { UP, DOWN, NEIGHBOURS };
enum { ROWS = 4, SETS = 2 };      /* rows of a slab; sets of buffers: this step's and the next one's */
enum { WARM_UP = 2, BLOCK = 20 }; /* steps that are not measured, and that are, before another form has its turn; even */
enum { WARM_UP_TAG = 0, FIRST_TAG = 100 };

static const char *const form_names[FORMS] = {"plain", "test", "waitall", "both"};

static const char help[] =
    "ghost_cells [-f FORM] [-b BYTES] [-i STEPS] [-l HEAVY,LIGHT] [-t PLACES] [-s SETS]\n"
    "  -f  plain, test, waitall, both, or all: each of them in turn  (plain)\n"
    "  -b  size of a message, K and M are understood                 (256K)\n"
    "  -i  measured steps of each form, an even number               (100)\n"
    "  -l  microseconds of work in a heavy and in a light step       (10000,1000)\n"
    "  -t  places in the computation at which test and both test     (20)\n"
    "  -s  sets of send buffers of waitall and both: 1 completes sends in their own step, 2 in the next  (2)\n";

struct options {
    int first, last; /* forms */
    size_t width;    /* doubles in a row; a row is a message */
    int steps, places, send_sets;
    double heavy_us, light_us;
};

/* What a step's time went for. */
enum part { STEP, COMMUNICATION, POST, WAIT_SEND, WAIT_RECEIVE, TESTS, PARTS };

/* A form's slab, its buffers, and what was measured of it. */
struct slab {
    enum form form;
    size_t width;
    double *now, *next;
    double *ghosts[SETS][NEIGHBOURS], *packed[SETS][NEIGHBOURS];
    MPI_Request receives[SETS][NEIGHBOURS], sends[SETS][NEIGHBOURS];
    double us[PARTS];                         /* since the measured pair of steps began */
    double measured[PARTS][MOST_REPETITIONS]; /* a step's share of each pair: one was heavy, one light */
    int pairs;
};

static struct options options = {PLAIN, PLAIN, 32768, 100, 20, 2, 10000, 1000};
static int rank, neighbour[NEIGHBOURS];
static MPI_Status unused_statuses[SETS * NEIGHBOURS]; /* gcc warns of MPICH's MPI_STATUSES_IGNORE, an array of none */

static int tests(const struct slab *slab)
{
    return slab->form == TEST || slab->form == BOTH;
}

static int waits_in_loop(const struct slab *slab)
{
    return slab->form == PLAIN || slab->form == TEST;
}

/* --- communication ------------------------------------------------------------------------------------------------ */

/* Adds to a part what has gone by since `begin`. */
static void took(struct slab *slab, enum part part, double begin)
{
    double us = now_us() - begin;
    slab->us[part] += us;
    slab->us[COMMUNICATION] += us;
}

/*
 * In a ring of two both neighbours are one rank. Messages do not overtake each other: what it sent upwards, which it does
 * first, goes to the receive that is posted first, for what comes from below.
 */
static void post_receives(struct slab *slab, int set, int tag)
{
    double begin = now_us();
    for (int side = NEIGHBOURS - 1; side >= 0; side--)
        MPI_Irecv(slab->ghosts[set][side], (int)slab->width, MPI_DOUBLE, neighbour[side], tag, MPI_COMM_WORLD,
                  &slab->receives[set][side]);
    took(slab, POST, begin);
}

static void send_boundary(struct slab *slab, int set, int tag)
{
    size_t rows[NEIGHBOURS] = {0, ROWS - 1};
    for (int side = 0; side < NEIGHBOURS; side++) {
        memcpy(slab->packed[set][side], slab->now + rows[side] * slab->width, slab->width * sizeof(double));
        double begin = now_us();
        MPI_Isend(slab->packed[set][side], (int)slab->width, MPI_DOUBLE, neighbour[side], tag, MPI_COMM_WORLD,
                  &slab->sends[set][side]);
        took(slab, POST, begin);
        if (waits_in_loop(slab)) {
            begin = now_us();
            MPI_Wait(&slab->sends[set][side], MPI_STATUS_IGNORE);
            took(slab, WAIT_SEND, begin);
        }
    }
}

/* Ends the receives of a step, and the sends of strategy 2: of the step before, where they have a set of buffers more. */
static void complete_exchange(struct slab *slab, int set)
{
    MPI_Request requests[2 * NEIGHBOURS];
    MPI_Request *sends = slab->sends[options.send_sets == 1 ? set : 1 - set];
    int count = NEIGHBOURS;
    memcpy(requests, slab->receives[set], sizeof slab->receives[set]);
    if (!waits_in_loop(slab)) {
        memcpy(requests + count, sends, sizeof slab->sends[set]);
        sends[UP] = sends[DOWN] = MPI_REQUEST_NULL;
        count += NEIGHBOURS;
    }
    slab->receives[set][UP] = slab->receives[set][DOWN] = MPI_REQUEST_NULL;
    double begin = now_us();
    MPI_Waitall(count, requests, unused_statuses);
    took(slab, WAIT_RECEIVE, begin);
}

static void complete_sends(struct slab *slab)
{
    double begin = now_us();
    MPI_Waitall(SETS * NEIGHBOURS, slab->sends[0], unused_statuses);
    took(slab, WAIT_RECEIVE, begin);
}

/* --- computation -------------------------------------------------------------------------------------------------- */

static void update_row(struct slab *slab, int row, const double *above, const double *below)
{
    const double *now = slab->now + (size_t)row * slab->width;
    double *next = slab->next + (size_t)row * slab->width;
    for (size_t i = 0; i < slab->width; i++)
        next[i] = now[i] + 0.1 * (above[i] + below[i] - 2.0 * now[i]);
}

/* Rows that need nothing of the neighbours, and whatever else a cell takes. */
static void compute_interior(struct slab *slab, double work_us)
{
    int places = tests(slab) ? options.places : 0;
    for (int row = 1; row < ROWS - 1; row++)
        update_row(slab, row, slab->now + (size_t)(row - 1) * slab->width, slab->now + (size_t)(row + 1) * slab->width);
    compute(work_us / (places + 1));
    for (int place = 0; place < places; place++) {
        int done;
        double begin = now_us();
        MPI_Testall(SETS * NEIGHBOURS, slab->receives[0], &done, unused_statuses);
        took(slab, TESTS, begin);
        compute(work_us / (places + 1));
    }
}

static void compute_boundary(struct slab *slab, int set)
{
    update_row(slab, 0, slab->ghosts[set][UP], slab->now + slab->width);
    update_row(slab, ROWS - 1, slab->now + (ROWS - 2) * slab->width, slab->ghosts[set][DOWN]);
}

/* --- steps -------------------------------------------------------------------------------------------------------- */

static int tag_of(const struct slab *slab, int step)
{
    return step < WARM_UP ? WARM_UP_TAG : FIRST_TAG + (int)slab->form;
}

static void run_step(struct slab *slab, int step, int steps)
{
    int set = step % SETS;
    double work_us = (rank + step) % 2 ? options.heavy_us : options.light_us;
    if (step + 1 < steps)
        post_receives(slab, 1 - set, tag_of(slab, step + 1));
    send_boundary(slab, set, tag_of(slab, step));
    compute_interior(slab, work_us);
    complete_exchange(slab, set);
    compute_boundary(slab, set);
    double *swap = slab->now;
    slab->now = slab->next;
    slab->next = swap;
}

/* Some steps of one form. Two in succession are measured together: every rank had one of each kind. */
static void run_block(struct slab *slab, int measured)
{
    int steps = WARM_UP + measured;
    double begin = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    post_receives(slab, 0, tag_of(slab, 0));
    for (int step = 0; step < steps; step++) {
        if (step >= WARM_UP && step % 2 == 0) {
            memset(slab->us, 0, sizeof slab->us);
            begin = now_us();
        }
        run_step(slab, step, steps);
        if (step == steps - 1)
            complete_sends(slab);
        if (step >= WARM_UP && step % 2 == 1) {
            slab->us[STEP] = now_us() - begin;
            for (int part = 0; part < PARTS; part++)
                slab->measured[part][slab->pairs] = slab->us[part] / 2;
            slab->pairs++;
        }
    }
}

static void make_slab(struct slab *slab, enum form form)
{
    size_t row_bytes = options.width * sizeof(double);
    slab->form = form;
    slab->width = options.width;
    slab->now = (double *)make_buffer(ROWS * row_bytes);
    slab->next = (double *)make_buffer(ROWS * row_bytes);
    for (size_t i = 0; i < ROWS * options.width; i++)
        slab->now[i] = (double)((i * 37 + (size_t)rank * 11) % 101) / 101;
    for (int set = 0; set < SETS; set++)
        for (int side = 0; side < NEIGHBOURS; side++) {
            slab->ghosts[set][side] = (double *)make_buffer(row_bytes);
            slab->packed[set][side] = (double *)make_buffer(row_bytes);
            slab->receives[set][side] = slab->sends[set][side] = MPI_REQUEST_NULL;
        }
}

static void free_slab(struct slab *slab)
{
    free(slab->now);
    free(slab->next);
    for (int set = 0; set < SETS; set++)
        for (int side = 0; side < NEIGHBOURS; side++) {
            free(slab->ghosts[set][side]);
            free(slab->packed[set][side]);
        }
}

static double checksum(const struct slab *slab)
{
    double sum = 0, all = 0;
    for (size_t i = 0; i < ROWS * slab->width; i++)
        sum += slab->now[i];
    MPI_Reduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    return all;
}

/* --- results ------------------------------------------------------------------------------------------------------ */

/* Means over ranks, on rank 0. */
static void gather(struct slab *slab)
{
    for (int part = 0; part < PARTS; part++) {
        double sums[MOST_REPETITIONS];
        MPI_Reduce(slab->measured[part], sums, slab->pairs, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
        for (int pair = 0; rank == 0 && pair < slab->pairs; pair++)
            slab->measured[part][pair] = sums[pair] / size_of(MPI_COMM_WORLD);
    }
}

static void print_median(const struct slab *slab, enum part part, int is_there)
{
    if (is_there)
        print_value(spread_of(slab->measured[part], slab->pairs).median);
    else
        print_cell("-");
}

static void print_steps(const struct slab *slab)
{
    printf("table steps form=%s ranks=%d\n", form_names[slab->form], size_of(MPI_COMM_WORLD));
    print_columns("tag bytes steps step_us* communication_us* post_us wait_send_us wait_receive_us test_us");
    print_count((size_t)tag_of(slab, WARM_UP));
    print_count(slab->width * sizeof(double));
    print_count(2 * (size_t)slab->pairs);
    print_spread(spread_of(slab->measured[STEP], slab->pairs));
    print_spread(spread_of(slab->measured[COMMUNICATION], slab->pairs));
    print_median(slab, POST, 1);
    print_median(slab, WAIT_SEND, waits_in_loop(slab));
    print_median(slab, WAIT_RECEIVE, 1);
    print_median(slab, TESTS, tests(slab));
    end_row();
}

/* What a form saves of the plain one, in percent; pairs of steps with one number ran soon after each other. */
static void print_saved(const struct slab *plain, const struct slab *slab, enum part part)
{
    double saved[MOST_REPETITIONS];
    for (int pair = 0; pair < slab->pairs; pair++)
        saved[pair] = 100 * (1 - slab->measured[part][pair] / plain->measured[part][pair]);
    print_spread(spread_of(saved, slab->pairs));
}

static void print_gain(const struct slab *plain, const struct slab *slab)
{
    printf("table gain form=%s ranks=%d\n", form_names[slab->form], size_of(MPI_COMM_WORLD));
    print_columns("communication_saved_percent* step_saved_percent*");
    print_saved(plain, slab, COMMUNICATION);
    print_saved(plain, slab, STEP);
    end_row();
}

/* --- options ------------------------------------------------------------------------------------------------------ */

/* Returns whether there is something to run. */
static int read_options(int argc, char **argv)
{
    int option, length;
    size_t bytes = 0;
    opterr = 0;
    while ((option = getopt(argc, argv, "f:b:i:l:t:s:h")) != -1)
        switch (option) {
        case 'f':
            if (!read_forms(optarg, form_names, FORMS, &options.first, &options.last))
                give_up("ghost_cells", "-f takes plain, test, waitall, both or all");
            break;
        case 'b':
            if (read_sizes(optarg, &bytes, 1) != 1 || bytes < sizeof(double) || bytes > INT32_MAX)
                give_up("ghost_cells", "-b takes one size from 8 bytes to 2047M");
            options.width = bytes / sizeof(double);
            break;
        case 'i':
            if (!read_count(optarg, 2, 2 * MOST_REPETITIONS, &options.steps) || options.steps % 2)
                give_up("ghost_cells", "-i takes an even number from 2 to 2002");
            break;
        case 'l':
            if (sscanf(optarg, "%lf,%lf%n", &options.heavy_us, &options.light_us, &length) != 2 || optarg[length] ||
                options.heavy_us < 0 || options.light_us < 0)
                give_up("ghost_cells", "-l takes two times in microseconds, as in 10000,1000");
            break;
        case 't':
            if (!read_count(optarg, 0, 1000000, &options.places))
                give_up("ghost_cells", "-t takes a number of places");
            break;
        case 's':
            if (!read_count(optarg, 1, SETS, &options.send_sets))
                give_up("ghost_cells", "-s takes 1 or 2");
            break;
        case 'h':
            print_help(help);
            return 0;
        default: give_up("ghost_cells", "no such option, or one without its value; -h lists them");
        }
    refuse_words("ghost_cells", argc);
    return 1;
}

static void run(void)
{
    static struct slab slabs[FORMS];
    int ranks = size_of(MPI_COMM_WORLD);
    neighbour[UP] = (rank + ranks - 1) % ranks;
    neighbour[DOWN] = (rank + 1) % ranks;
    calibrate_work();
    note_crowding(MPI_COMM_WORLD);
    for (int form = options.first; form <= options.last; form++)
        make_slab(&slabs[form], (enum form)form);
    for (int done = 0; done < options.steps; done += BLOCK)
        for (int form = options.first; form <= options.last; form++)
            run_block(&slabs[form], options.steps - done < BLOCK ? options.steps - done : BLOCK);
    double first_sum = 0;
    for (int form = options.first; form <= options.last; form++) {
        double sum = checksum(&slabs[form]);
        gather(&slabs[form]);
        first_sum = form == options.first ? sum : first_sum;
        if (rank == 0 && sum != first_sum) {
            fprintf(stderr, "ghost_cells: %s computed %.17g, not %.17g\n", form_names[form], sum, first_sum);
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
        if (rank == 0)
            print_steps(&slabs[form]);
    }
    for (int form = options.first + 1; rank == 0 && form <= options.last; form++)
        print_gain(&slabs[PLAIN], &slabs[form]);
    if (rank == 0)
        printf("# checksum %.15g\n", first_sum);
    for (int form = options.first; form <= options.last; form++)
        free_slab(&slabs[form]);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    rank = rank_in(MPI_COMM_WORLD);
    if (read_options(argc, argv)) {
        if (size_of(MPI_COMM_WORLD) < 2)
            give_up("ghost_cells", "2 ranks or more");
        run();
    }
    MPI_Finalize();
    return 0;
}
