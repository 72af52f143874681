/* A program whose ranks take no processor while it hangs, so that many of them fit on a machine. */
#include "hang.h"

/* All look, now and then, for a message of the last rank, which reads from a pipe into which nobody writes. */
SITE void nobody_is_awake(void)
{
    char byte;
    int ends[2];
    CHECK(pipe(ends) == 0);
    here();
    if (rank == size - 1)
        CHECK(read(ends[0], &byte, 1) == 1);
    looks_for(size - 1, TAG, 0.2);
}

int main(int argc, char **argv)
{
    static const struct program programs[] = {PROGRAM(nobody_is_awake)};
    return RUN_PROGRAM(argc, argv, MPI_THREAD_SINGLE, programs);
}
