/*
 * What a call costs whose path is new: a search that calls MPI at its leaves by ever new ways, bare (PMPI_Iprobe) and recorded
 * (MPI_Iprobe) batches in turn within one process. Prints medians of nanoseconds added a call, of the first batches and of the last.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { DEPTH = 20, BATCH = 256, BATCHES = 3000, SHOWN = 15 };

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static __attribute__((noinline)) void search(int depth, int way, int is_bare)
{
    if (depth == 0) {
        int flag;
        if (is_bare)
            PMPI_Iprobe(MPI_ANY_SOURCE, 0, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);
        else
            MPI_Iprobe(MPI_ANY_SOURCE, 0, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);
        return;
    }
    if (way & 1)
        search(depth - 1, way / 2, is_bare);
    else
        search(depth - 1, way / 2, is_bare);
    __asm__ volatile(""); /* no tail call */
}

static double batch(int first, int is_bare)
{
    double begin = now_ns();
    for (int way = first; way < first + BATCH; way++)
        search(DEPTH, way, is_bare);
    return (now_ns() - begin) / BATCH;
}

static int ascending(const void *a, const void *b)
{
    double d = *(const double *)a - *(const double *)b;
    return (d > 0) - (d < 0);
}

static double median(double *of)
{
    qsort(of, SHOWN, sizeof *of, ascending);
    return of[SHOWN / 2];
}

int main(int argc, char **argv)
{
    static double added[BATCHES];
    MPI_Init(&argc, &argv);
    batch(0, 1);
    for (int i = 0; i < BATCHES; i++) {
        double bare = batch(i * BATCH, 1);
        added[i] = batch(i * BATCH, 0) - bare;
    }
    printf("new paths %.0f ns a call, after %d ever new ones %.0f ns\n", median(added), (BATCHES - SHOWN) * BATCH,
        median(added + BATCHES - SHOWN));
    MPI_Finalize();
    return 0;
}
