/*
 * A program that closes all high descriptors, as daemons do, and puts a file of its own on each number. Prints how much stands in that
 * file when it has called MPI from many paths, most often from the last of them, and how many of the numbers are still its own.
 */
#include "work.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FIRST = 200, LAST = 1000, ROUNDS = 3000, STARTS = 12 };

SITE void last_and_most(void)
{
    for (int round = 0; round < ROUNDS; round++)
        by_ways(2);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    by_ways(2);
    FILE *file = tmpfile();
    struct stat own, now;
    CHECK(file && fstat(fileno(file), &own) == 0);
    for (int number = FIRST; number < LAST; number++)
        CHECK(dup2(fileno(file), number) == number);
    for (int round = 0; round < ROUNDS; round++)
        by_ways((1 << STARTS) + round);
    last_and_most();
    int kept = 0;
    for (int number = FIRST; number < LAST; number++)
        kept += fstat(number, &now) == 0 && now.st_ino == own.st_ino && now.st_dev == own.st_dev;
    CHECK(fstat(fileno(file), &now) == 0);
    printf("%ld bytes, %d of %d numbers\n", (long)now.st_size, kept, LAST - FIRST);
    MPI_Finalize();
    CHECK(fstat(LAST - 1, &now) == 0 && now.st_ino == own.st_ino && now.st_size == 0);
    return 0;
}
