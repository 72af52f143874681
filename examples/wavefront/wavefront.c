/*
 * A pipelined wavefront, as in sweeps of transport codes: rank r takes the edge of block k from rank r - 1, computes block k,
 * and hands its own edge to rank r + 1. All ranks are at work once the pipeline is full, if nothing holds them up.
 *
 *   blocking     MPI_Recv, compute, MPI_Send
 *   overlapped   the receive of the next block is posted before this one is computed, and a send is completed a block later
 *
 * Every other block takes longer, as cells that need a correction do. While rank r has a heavy block, r + 1 has a light one before it:
 * ranks that must meet for each edge take the time of the heavy one for every block; with one block of slack, the mean.
 */
#include "../common/experiment.h"

enum form { BLOCKING, OVERLAPPED, FORMS };
enum { SETS = 2 }; /* of buffers: this block's and another one's */
enum { WARM_UP_TAG = 0, FIRST_TAG = 200 };

static const char *const form_names[FORMS] = {"blocking", "overlapped"};

static const char help[] =
    "wavefront [-f FORM] [-n BLOCKS] [-w US] [-u PERCENT] [-b BYTES] [-r SWEEPS]\n"
    "  -f  blocking, overlapped, or all: both in turn                 (blocking)\n"
    "  -n  blocks of a sweep                                          (64)\n"
    "  -w  microseconds of work in a block, the mean                  (1000)\n"
    "  -u  by how many percent blocks take longer and shorter in turn  (50)\n"
    "  -b  size of an edge, K and M are understood                    (64K)\n"
    "  -r  measured sweeps of each form                               (20)\n";

struct options {
    int first, last; /* forms */
    size_t width;    /* doubles of an edge */
    int blocks, work_us, uneven_percent, sweeps;
};

/* What a sweep's time went for. */
enum part { SWEEP, COMMUNICATION, POST, WAIT, PARTS };

/* What a form computes with, and what was measured of it. */
struct front {
    enum form form;
    double *cells; /* what blocks leave for the next one of the same rank */
    double *in[SETS], *out[SETS];
    MPI_Request receives[SETS], sends[SETS];
    double us[PARTS];
    double measured[PARTS][MOST_REPETITIONS];
};

static struct options options = {BLOCKING, BLOCKING, 8192, 64, 1000, 50, 20};
static int rank, ranks;

static int is_first(void)
{
    return rank == 0;
}

static int is_last(void)
{
    return rank == ranks - 1;
}

/* --- computation -------------------------------------------------------------------------------------------------- */

static double work_of(int block)
{
    double more = options.uneven_percent / 100.0;
    return options.work_us * (block % 2 ? 1 - more : 1 + more);
}

static void compute_block(struct front *front, int block)
{
    double *in = front->in[block % SETS];
    for (size_t i = 0; is_first() && i < options.width; i++)
        in[i] = (double)((i + (size_t)block * 31) % 101) / 101;
    for (size_t i = 0; i < options.width; i++)
        front->cells[i] = 0.5 * front->cells[i] + 0.25 * (in[i] + in[i ? i - 1 : 0]);
    compute(work_of(block));
}

/* When the last rank would be through if edges took no time and had room: each block follows the one before it in both ways. */
static double ideal_us(void)
{
    double *through = (double *)make_buffer((size_t)ranks * sizeof(double));
    for (int block = 0; block < options.blocks; block++)
        for (int at = 0; at < ranks; at++) {
            double edge = at ? through[at - 1] : 0;
            through[at] = (edge > through[at] ? edge : through[at]) + work_of(block);
        }
    double last = through[ranks - 1];
    free(through);
    return last;
}

/* --- communication ------------------------------------------------------------------------------------------------ */

/* Adds to a part what has gone by since `begin`. */
static void took(struct front *front, enum part part, double begin)
{
    double us = now_us() - begin;
    front->us[part] += us;
    front->us[COMMUNICATION] += us;
}

static void wait_for(struct front *front, MPI_Request *request)
{
    double begin = now_us();
    MPI_Wait(request, MPI_STATUS_IGNORE);
    took(front, WAIT, begin);
}

static void receive(struct front *front, int block, int tag)
{
    double begin = now_us();
    MPI_Recv(front->in[block % SETS], (int)options.width, MPI_DOUBLE, rank - 1, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    took(front, WAIT, begin);
}

static void send(struct front *front, int block, int tag)
{
    double begin = now_us();
    MPI_Send(front->out[block % SETS], (int)options.width, MPI_DOUBLE, rank + 1, tag, MPI_COMM_WORLD);
    took(front, WAIT, begin);
}

static void post_receive(struct front *front, int block, int tag)
{
    double begin = now_us();
    MPI_Irecv(front->in[block % SETS], (int)options.width, MPI_DOUBLE, rank - 1, tag, MPI_COMM_WORLD,
              &front->receives[block % SETS]);
    took(front, POST, begin);
}

static void post_send(struct front *front, int block, int tag)
{
    double begin = now_us();
    MPI_Isend(front->out[block % SETS], (int)options.width, MPI_DOUBLE, rank + 1, tag, MPI_COMM_WORLD,
              &front->sends[block % SETS]);
    took(front, POST, begin);
}

static void pack_edge(struct front *front, int block)
{
    memcpy(front->out[block % SETS], front->cells, options.width * sizeof(double));
}

/* --- sweeps ------------------------------------------------------------------------------------------------------- */

static void sweep_blocking(struct front *front, int tag)
{
    for (int block = 0; block < options.blocks; block++) {
        if (!is_first())
            receive(front, block, tag);
        compute_block(front, block);
        pack_edge(front, block);
        if (!is_last())
            send(front, block, tag);
    }
}

static void sweep_overlapped(struct front *front, int tag)
{
    if (!is_first())
        post_receive(front, 0, tag);
    for (int block = 0; block < options.blocks; block++) {
        if (!is_first() && block + 1 < options.blocks)
            post_receive(front, block + 1, tag);
        if (!is_first())
            wait_for(front, &front->receives[block % SETS]);
        compute_block(front, block);
        pack_edge(front, block);
        if (!is_last())
            post_send(front, block, tag);
        if (!is_last() && block > 0)
            wait_for(front, &front->sends[(block - 1) % SETS]);
    }
    if (!is_last())
        wait_for(front, &front->sends[(options.blocks - 1) % SETS]);
}

/* One sweep of a form; its time is that of the rank that is through last. Others are means over ranks. */
static void measure_sweep(struct front *front, int sweep)
{
    int tag = sweep < 0 ? WARM_UP_TAG : FIRST_TAG + (int)front->form;
    double sums[PARTS], slowest;
    memset(front->us, 0, sizeof front->us);
    MPI_Barrier(MPI_COMM_WORLD);
    double begin = now_us();
    if (front->form == BLOCKING)
        sweep_blocking(front, tag);
    else
        sweep_overlapped(front, tag);
    front->us[SWEEP] = now_us() - begin;
    MPI_Reduce(&front->us[SWEEP], &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    MPI_Reduce(front->us, sums, PARTS, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    for (int part = 0; rank == 0 && sweep >= 0 && part < PARTS; part++)
        front->measured[part][sweep] = part == SWEEP ? slowest : sums[part] / ranks;
}

static void make_front(struct front *front, enum form form)
{
    size_t bytes = options.width * sizeof(double);
    front->form = form;
    front->cells = (double *)make_buffer(bytes);
    for (int set = 0; set < SETS; set++) {
        front->in[set] = (double *)make_buffer(bytes);
        front->out[set] = (double *)make_buffer(bytes);
    }
}

static void free_front(struct front *front)
{
    free(front->cells);
    for (int set = 0; set < SETS; set++) {
        free(front->in[set]);
        free(front->out[set]);
    }
}

static double checksum(const struct front *front)
{
    double sum = 0, all = 0;
    for (size_t i = 0; i < options.width; i++)
        sum += front->cells[i];
    MPI_Reduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    return all;
}

/* --- results ------------------------------------------------------------------------------------------------------ */

static void print_front(const struct front *front)
{
    printf("table wavefront form=%s ranks=%d\n", form_names[front->form], ranks);
    print_columns("tag bytes blocks sweep_us* ideal_us communication_us* post_us wait_us");
    print_count((size_t)(FIRST_TAG + (int)front->form));
    print_count(options.width * sizeof(double));
    print_count((size_t)options.blocks);
    print_spread(spread_of(front->measured[SWEEP], options.sweeps));
    print_value(ideal_us());
    print_spread(spread_of(front->measured[COMMUNICATION], options.sweeps));
    if (front->form == OVERLAPPED)
        print_value(spread_of(front->measured[POST], options.sweeps).median);
    else
        print_cell("-");
    print_value(spread_of(front->measured[WAIT], options.sweeps).median);
    end_row();
}

static void run(void)
{
    static struct front fronts[FORMS];
    calibrate_work();
    note_crowding(MPI_COMM_WORLD);
    for (int form = options.first; form <= options.last; form++)
        make_front(&fronts[form], (enum form)form);
    for (int sweep = -1; sweep < options.sweeps; sweep++) /* the first one is to warm up */
        for (int form = options.first; form <= options.last; form++)
            measure_sweep(&fronts[form], sweep);
    double first_sum = 0;
    for (int form = options.first; form <= options.last; form++) {
        double sum = checksum(&fronts[form]);
        first_sum = form == options.first ? sum : first_sum;
        if (rank == 0 && sum != first_sum) {
            fprintf(stderr, "wavefront: %s computed %.17g, not %.17g\n", form_names[form], sum, first_sum);
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
        if (rank == 0)
            print_front(&fronts[form]);
        free_front(&fronts[form]);
    }
    if (rank == 0)
        printf("# checksum %.15g\n", first_sum);
}

/* --- options ------------------------------------------------------------------------------------------------------ */

/* Returns whether there is something to run. */
static int read_options(int argc, char **argv)
{
    const char *const name = "wavefront";
    size_t bytes = 0;
    int option;
    opterr = 0;
    while ((option = getopt(argc, argv, "f:n:w:u:b:r:h")) != -1)
        switch (option) {
        case 'f':
            if (!read_forms(optarg, form_names, FORMS, &options.first, &options.last))
                give_up(name, "-f takes blocking, overlapped or all");
            break;
        case 'n':
            if (!read_count(optarg, 1, 1000000, &options.blocks))
                give_up(name, "-n takes a number of blocks");
            break;
        case 'w':
            if (!read_count(optarg, 0, 10000000, &options.work_us))
                give_up(name, "-w takes microseconds, up to ten million");
            break;
        case 'u':
            if (!read_count(optarg, 0, 100, &options.uneven_percent))
                give_up(name, "-u takes a percentage from 0 to 100");
            break;
        case 'b':
            if (read_sizes(optarg, &bytes, 1) != 1 || bytes < sizeof(double) || bytes > INT32_MAX)
                give_up(name, "-b takes one size from 8 bytes to 2047M");
            options.width = bytes / sizeof(double);
            break;
        case 'r':
            if (!read_count(optarg, 1, MOST_REPETITIONS, &options.sweeps))
                give_up(name, "-r takes a number from 1 to 1001");
            break;
        case 'h':
            print_help(help);
            return 0;
        default: give_up(name, "no such option, or one without its value; -h lists them");
        }
    refuse_words(name, argc);
    return 1;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    rank = rank_in(MPI_COMM_WORLD);
    ranks = size_of(MPI_COMM_WORLD);
    if (read_options(argc, argv)) {
        if (ranks < 2)
            give_up("wavefront", "2 ranks or more");
        run();
    }
    MPI_Finalize();
    return 0;
}
