/*
 * Steps of known number and, by MPI_Wtime, of known duration: 1 to 3 ms each, every fifth with a collective. The argument says
 * what is marked: steps, regions, or nothing. Rank 0 prints "step NUMBER SECONDS" for each step but the last, whose end is not
 * marked. Before the loop the same exchange is made once.
 */
#include "check.h"

enum { STEPS = 40, COUNT = 1000 };

static void compute(double seconds)
{
    double begin = MPI_Wtime();
    while (MPI_Wtime() - begin < seconds)
        ;
}

__attribute__((noinline)) static void exchange(int rank, int ranks, char *buffers)
{
    MPI_Request requests[4];
    for (int way = 0; way < 2; way++) {
        int peer = (rank + (way ? 1 : ranks - 1)) % ranks;
        MPI_Irecv(buffers + way * COUNT, COUNT, MPI_BYTE, peer, way, MPI_COMM_WORLD, &requests[way]);
        MPI_Isend(buffers + (2 + way) * COUNT, COUNT, MPI_BYTE, peer, !way, MPI_COMM_WORLD, &requests[2 + way]);
    }
    compute(1e-3);
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
}

int main(int argc, char **argv)
{
    int rank, ranks;
    double begins[STEPS], sum;
    char *buffers = calloc(4, COUNT);
    const char *marks = argc > 1 ? argv[1] : "nothing";
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    exchange(rank, ranks, buffers);
    for (int step = 0; step < STEPS; step++) {
        if (!strcmp(marks, "steps"))
            MPI_Pcontrol(2);
        begins[step] = MPI_Wtime();
        if (!strcmp(marks, "regions"))
            MPI_Pcontrol(1, "iteration");
        exchange(rank, ranks, buffers);
        compute(step % 3 * 0.5e-3);
        if (step % 5 == 4)
            MPI_Allreduce(&begins[step], &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        if (!strcmp(marks, "regions"))
            MPI_Pcontrol(-1, "iteration");
    }
    for (int step = 0; rank == 0 && step + 1 < STEPS; step++)
        printf("step %d %.9f\n", step + 1, begins[step + 1] - begins[step]);
    free(buffers);
    MPI_Finalize();
    return 0;
}
