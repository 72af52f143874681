#include "module.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Touched, so that the first message does not pay for pages. */
static char *buffer(void)
{
    char *bytes = malloc(MAX_BYTES);
    if (!bytes) {
        fprintf(stderr, "lapscope-calibrate: no memory for a message of %d bytes\n", MAX_BYTES);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return memset(bytes, 1, MAX_BYTES);
}

static void transfers_and_collectives(struct bench *bench, double seconds)
{
    measure_transfers(bench, seconds * 0.5);
    if (bench->ranks == 1)
        return;
    measure_round_trips(bench, seconds * 0.15);
    measure_sharing(bench, seconds * 0.1);
    measure_collectives(bench, seconds * 0.25);
}

static int measure(void (*what)(struct bench *, double), double seconds)
{
    struct bench bench;
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &bench.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &bench.ranks);
    bench.out = buffer();
    bench.in = buffer();
    what(&bench, seconds > 0 ? seconds : 10);
    end_progress(&bench);
    MPI_Finalize();
    free(bench.out);
    free(bench.in);
    return 0;
}

__attribute__((visibility("default"))) calibrate_fn lapscope_calibrate;

int lapscope_calibrate(const char *mode, double seconds)
{
    if (!strcmp(mode, "transfers"))
        return measure(transfers_and_collectives, seconds);
    if (!strcmp(mode, "limits"))
        return measure(probe_limits, seconds);
    if (!strcmp(mode, "progress"))
        return measure(measure_progress, seconds);
    if (!strcmp(mode, "gpu"))
        return measure(use_gpu, seconds);
    fprintf(stderr, "lapscope-calibrate: no mode %s: transfers, limits, progress, gpu\n", mode);
    return 2;
}
