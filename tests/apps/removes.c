/* A program that tidies up while it runs: it removes the directory that is its first argument, with all that is in it, or gives it
 * the name that is its second one. */
#include "check.h"

#include <ftw.h>

static int remove_it(const char *path, const struct stat *facts, int kind, struct FTW *where)
{
    (void)facts, (void)kind, (void)where;
    return remove(path);
}

int main(int argc, char **argv)
{
    int rank = start(&argc, &argv, 2);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0 && argc > 2)
        CHECK(rename(argv[1], argv[2]) == 0);
    else if (rank == 0)
        nftw(argv[1], remove_it, 16, FTW_DEPTH | FTW_PHYS);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
