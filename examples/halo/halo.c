/*
 * A 2D reaction-diffusion step with halo exchange, written as textbooks advise: post the exchange, compute the interior,
 * wait, compute the boundary. The interior takes longer than the exchange, so the exchange should cost nothing. Each
 * rank has a slab of whole rows; the slabs close to a ring.
 *
 *   halo [-x CELLS] [-y ROWS] [-i ITERATIONS] [-t MS] [-s STEPS]
 *
 * CELLS is the length of a row of one rank; a row is what goes to the neighbours above and below (8 bytes a cell).
 * The work on a cell is a fixed number of reaction steps, calibrated at the start so that the interior takes MS; -s
 * gives that number instead, so that two runs do the same. It is never "compute until a deadline": that would hide
 * whatever else takes the processor's time.
 */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct block {
    int nx, ny;        /* cells of this rank; arrays have one more on each side, for the halo */
    double *now, *next;
    MPI_Comm ring;
    int up, down;
};

struct times {
    double post, interior, wait, boundary;
};

static double *cell(const struct block *b, double *field, int x, int y)
{
    return &field[(size_t)y * (size_t)(b->nx + 2) + (size_t)x];
}

/* --- computation -------------------------------------------------------------------------------------------------- */

/* Diffusion from the four neighbours, then `steps` steps of a logistic reaction. Both ends of a row stay as they are. */
static void update_row(struct block *b, int y, int steps)
{
    const double *above = cell(b, b->now, 0, y - 1), *row = cell(b, b->now, 0, y), *below = cell(b, b->now, 0, y + 1);
    double *out = cell(b, b->next, 0, y);
    enum { STRIP = 512 }; /* cells that stay in the first-level cache while they react */
    for (int begin = 1; begin <= b->nx; begin += STRIP) {
        int end = begin + STRIP <= b->nx ? begin + STRIP : b->nx + 1;
        for (int x = begin; x < end; x++)
            out[x] = row[x] + 0.1 * (above[x] + below[x] + row[x - 1] + row[x + 1] - 4.0 * row[x]);
        for (int step = 0; step < steps; step++)
            for (int x = begin; x < end; x++)
                out[x] += 1e-3 * out[x] * (1.0 - out[x]);
    }
}

/* Rows that need nothing of the halo. */
static void compute_interior(struct block *b, int steps)
{
    for (int y = 2; y < b->ny; y++)
        update_row(b, y, steps);
}

/* The first and last row, which do. */
static void compute_boundary(struct block *b, int steps)
{
    update_row(b, 1, steps);
    update_row(b, b->ny, steps);
}

/* --- communication ------------------------------------------------------------------------------------------------ */

enum { UPWARD, DOWNWARD, REQUESTS = 4 };

static void post_exchange(struct block *b, MPI_Request requests[REQUESTS])
{
    double *field = b->now;
    int nx = b->nx, ny = b->ny;
    MPI_Irecv(cell(b, field, 1, 0), nx, MPI_DOUBLE, b->up, DOWNWARD, b->ring, &requests[0]);
    MPI_Irecv(cell(b, field, 1, ny + 1), nx, MPI_DOUBLE, b->down, UPWARD, b->ring, &requests[1]);
    MPI_Isend(cell(b, field, 1, 1), nx, MPI_DOUBLE, b->up, UPWARD, b->ring, &requests[2]);
    MPI_Isend(cell(b, field, 1, ny), nx, MPI_DOUBLE, b->down, DOWNWARD, b->ring, &requests[3]);
}

static void wait_exchange(MPI_Request requests[REQUESTS])
{
    MPI_Waitall(REQUESTS, requests, MPI_STATUSES_IGNORE);
}

static void iterate(struct block *b, int steps, struct times *times)
{
    MPI_Request requests[REQUESTS];
    double begin = MPI_Wtime();
    post_exchange(b, requests);
    double posted = MPI_Wtime();
    compute_interior(b, steps);
    double computed = MPI_Wtime();
    wait_exchange(requests);
    double waited = MPI_Wtime();
    compute_boundary(b, steps);
    double end = MPI_Wtime();
    times->post += posted - begin;
    times->interior += computed - posted;
    times->wait += waited - computed;
    times->boundary += end - waited;
    double *swap = b->now;
    b->now = b->next;
    b->next = swap;
}

/* --- before and after --------------------------------------------------------------------------------------------- */

static double *make_field(const struct block *b)
{
    size_t cells = (size_t)(b->nx + 2) * (size_t)(b->ny + 2);
    double *field = malloc(cells * sizeof *field);
    if (!field) {
        fprintf(stderr, "halo: no memory for %zu cells\n", cells);
        MPI_Abort(MPI_COMM_WORLD, 1);
        abort();
    }
    for (size_t i = 0; i < cells; i++)
        field[i] = 0.5 + 0.25 * sin((double)(i % 1024));
    return field;
}

static void make_block(struct block *b, int nx, int ny)
{
    int ranks, wraps = 1;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Cart_create(MPI_COMM_WORLD, 1, &ranks, &wraps, 0, &b->ring);
    MPI_Cart_shift(b->ring, 0, 1, &b->up, &b->down);
    b->nx = nx;
    b->ny = ny;
    b->now = make_field(b);
    b->next = make_field(b);
}

static double slowest(double seconds)
{
    double all;
    MPI_Allreduce(&seconds, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return all;
}

/* How long the exchange takes when nothing is computed meanwhile. */
static double time_exchange(struct block *b)
{
    enum { WARM_UP = 1, TIMES = 3 };
    double begin = 0;
    for (int i = 0; i < WARM_UP + TIMES; i++) {
        MPI_Request requests[REQUESTS];
        MPI_Barrier(b->ring);
        if (i == WARM_UP)
            begin = MPI_Wtime();
        post_exchange(b, requests);
        wait_exchange(requests);
    }
    return slowest(MPI_Wtime() - begin) / TIMES;
}

/* Reaction steps a cell that make the interior take `seconds`, while all ranks compute. */
static int calibrate(struct block *b, double seconds)
{
    enum { STEPS = 16, TRIALS = 5 };
    double best = INFINITY; /* of several: whatever else ran meanwhile made the others longer */
    for (int trial = 0; trial < TRIALS; trial++) {
        MPI_Barrier(b->ring);
        double begin = MPI_Wtime();
        compute_interior(b, STEPS);
        best = fmin(best, slowest(MPI_Wtime() - begin));
    }
    int steps = (int)(seconds / best * STEPS);
    return steps > 1 ? steps : 1;
}

static double checksum(struct block *b)
{
    double sum = 0, all;
    for (int y = 1; y <= b->ny; y++)
        for (int x = 1; x <= b->nx; x++)
            sum += *cell(b, b->now, x, y);
    MPI_Allreduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return all;
}

static void print_times(const struct times *t, int iterations, double exchange)
{
    double scale = 1e3 / iterations;
    double total = t->post + t->interior + t->wait + t->boundary;
    printf("an iteration: %.1f ms = post %.1f + interior %.1f + MPI_Waitall %.1f + boundary %.1f\n", total * scale,
           t->post * scale, t->interior * scale, t->wait * scale, t->boundary * scale);
    printf("in MPI: %.1f ms an iteration; the exchange alone takes %.1f ms\n", (t->post + t->wait) * scale, exchange * 1e3);
}

int main(int argc, char **argv)
{
    int nx = 512 * 1024, ny = 12, iterations = 20, steps = 0, option, rank;
    double milliseconds = 100;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    while ((option = getopt(argc, argv, "x:y:i:t:s:")) != -1)
        switch (option) {
        case 'x': nx = atoi(optarg); break;
        case 'y': ny = atoi(optarg); break;
        case 'i': iterations = atoi(optarg); break;
        case 't': milliseconds = atof(optarg); break;
        case 's': steps = atoi(optarg); break;
        default: MPI_Abort(MPI_COMM_WORLD, 2);
        }
    if (nx < 3 || ny < 3 || iterations < 1) {
        fprintf(stderr, "halo: at least 3 cells, 3 rows and 1 iteration\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    struct block block;
    make_block(&block, nx, ny);
    double exchange = time_exchange(&block);
    if (!steps)
        steps = calibrate(&block, milliseconds / 1e3);
    struct times times = {0, 0, 0, 0};
    for (int i = 0; i < iterations; i++)
        iterate(&block, steps, &times);
    double sum = checksum(&block);
    if (rank == 0) {
        printf("rows of %.1f MB, %d steps a cell, %d iterations\n", nx * 8e-6, steps, iterations);
        print_times(&times, iterations, exchange);
        printf("checksum %.12g\n", sum);
    }
    MPI_Comm_free(&block.ring);
    free(block.now);
    free(block.next);
    MPI_Finalize();
    return 0;
}
