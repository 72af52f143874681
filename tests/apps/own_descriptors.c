/*
 * A program that takes descriptors by number: between its calls, from ever new call paths, it puts a file of its own on every number
 * that was free when MPI_Init returned, and takes it away again. Nobody else writes into that file, and nobody closes it. It prints
 * which numbers are open when MPI_Init has returned, and at the end.
 */
#include "work.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NUMBERS = 200, ROUNDS = 64 };

static void print_open(void)
{
    for (int number = 0; number < NUMBERS; number++)
        if (fcntl(number, F_GETFD) >= 0)
            printf("%d ", number);
    putchar('\n');
}

int main(int argc, char **argv)
{
    char was_free[NUMBERS];
    struct stat facts, now;
    MPI_Init(&argc, &argv);
    print_open();
    for (int number = 3; number < NUMBERS; number++)
        was_free[number] = fcntl(number, F_GETFD) < 0;
    by_ways(2);
    FILE *file = tmpfile();
    CHECK(file);
    int own = fcntl(fileno(file), F_DUPFD, NUMBERS);
    fclose(file);
    CHECK(own >= NUMBERS && fstat(own, &facts) == 0);
    for (int round = 0; round < ROUNDS; round++) {
        for (int number = 3; number < NUMBERS; number++)
            CHECK(!was_free[number] || dup2(own, number) == number);
        by_ways(4 + round);
        for (int number = 3; number < NUMBERS; number++)
            if (was_free[number]) {
                CHECK(fstat(number, &now) == 0 && now.st_ino == facts.st_ino && now.st_dev == facts.st_dev);
                close(number);
            }
    }
    CHECK(fstat(own, &now) == 0);
    print_open();
    printf("%lld bytes\n", (long long)now.st_size);
    MPI_Finalize();
    return 0;
}
