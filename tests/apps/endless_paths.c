/*
 * A search that calls MPI at its leaves: hardly two calls have the same path. It prints whether its memory has grown by no more
 * than 32 MB.
 */
#include "work.h"

enum { DEPTH = 18, LEAVES = 1 << DEPTH };

SITE void search(int depth, int way)
{
    if (depth == 0) {
        int flag;
        MPI_Iprobe(MPI_ANY_SOURCE, 0, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);
        return;
    }
    if (way & 1)
        search(depth - 1, way / 2);
    else
        search(depth - 1, way / 2);
    __asm__ volatile(""); /* no tail call */
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    search(DEPTH, 0);
    long before = resident_kb();
    for (int way = 0; way < LEAVES; way++)
        search(DEPTH, way);
    puts(resident_kb() - before < 32 << 10 ? "bounded" : "grown");
    MPI_Finalize();
    return 0;
}
