/*
 * What the code of `lapscope help cures` stands in: each piece is a function, called by both ranks, that brings what the other has
 * in `out` into `in`. The test puts the functions, and a table of them, in place of the line below.
 */
#include "../check.h"

enum { SIZE = 100 }; /* so few that MPI_Send waits for nobody */
static double in[SIZE], out[SIZE];
static int peer, count = SIZE, half = SIZE / 2, tag = 7, blocks = 4;
static MPI_Comm comm;
static MPI_Group group;
static MPI_Win window;
static MPI_Request requests[4];

static void compute(int block)
{
    for (double end = MPI_Wtime() + 1e-3 + 1e-9 * block; MPI_Wtime() < end;)
        ;
}

/* CURES */

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    comm = MPI_COMM_WORLD;
    peer = 1 - comm_rank(comm);
    MPI_Win_create(in, sizeof in, sizeof in[0], MPI_INFO_NULL, comm, &window);
    MPI_Group all;
    MPI_Comm_group(comm, &all);
    MPI_Group_incl(all, 1, &peer, &group);
    MPI_Group_free(&all);
    for (size_t number = 0; number < sizeof cures / sizeof cures[0]; number++) {
        for (int i = 0; i < SIZE; i++) {
            in[i] = -1;
            out[i] = (double)i * (2 - peer) + (double)number;
        }
        MPI_Barrier(comm);
        if (cures[number].has_epoch)
            MPI_Win_post(group, 0, window);
        cures[number].function();
        if (cures[number].has_epoch)
            MPI_Win_wait(window);
        for (int i = 0; i < SIZE && cures[number].receives; i++)
            CHECK(in[i] == (double)i * (1 + peer) + (double)number);
    }
    MPI_Win_free(&window);
    MPI_Group_free(&group);
    if (peer == 1)
        printf("%d cures\n", (int)(sizeof cures / sizeof cures[0]));
    MPI_Finalize();
    return 0;
}
