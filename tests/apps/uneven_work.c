/*
 * Four ranks work twice an iteration, each time with a barrier behind it; to work is to sleep, so that it takes as long on a busy
 * machine. Who takes longest, says the argument: `same`: rank 2, twice as long, in the first half; `second`: rank 1, three times as
 * long, in the second half; `turns`: one after the other, in the first half; `seldom`: rank 3, eight times as long, each tenth time;
 * `late`: nobody, but each rank waits until the one before it has worked. How long each rank did work in each half is
 * printed, since one that sleeps may be woken late.
 */
#include "work.h"

enum { RANKS = 4, ROUNDS = 20, WORK_NS = 40000000 };

static int rank;

static int64_t worked[2][ROUNDS];

static int64_t work(int times)
{
    int64_t ns = (int64_t)times * WORK_NS, begin = now_ns();
    struct timespec t = {ns / 1000000000, ns % 1000000000};
    nanosleep(&t, NULL);
    return now_ns() - begin;
}

SITE void first_half(int round, int times)
{
    worked[0][round] = work(times);
    MPI_Barrier(MPI_COMM_WORLD);
}

SITE void second_half(int round, int times)
{
    worked[1][round] = work(times);
    MPI_Barrier(MPI_COMM_WORLD);
}

SITE void one_after_the_other(void)
{
    char token = 0;
    if (rank > 0)
        MPI_Recv(&token, 1, MPI_BYTE, rank - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    work(1);
    if (rank < RANKS - 1)
        MPI_Send(&token, 1, MPI_BYTE, rank + 1, 0, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
}

static int times_of(const char *who, int round, int is_second)
{
    if (strcmp(who, "same") == 0 && rank == 2 && !is_second)
        return 2;
    if (strcmp(who, "second") == 0 && rank == 1 && is_second)
        return 3;
    if (strcmp(who, "turns") == 0 && rank == round % RANKS && !is_second)
        return 3;
    if (strcmp(who, "seldom") == 0 && rank == 3 && round % 10 == 4 && !is_second)
        return 8;
    return 1;
}

int main(int argc, char **argv)
{
    rank = start(&argc, &argv, RANKS);
    CHECK(argc > 1);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int round = 0; round < ROUNDS; round++) {
        if (strcmp(argv[1], "late") == 0) {
            one_after_the_other();
            continue;
        }
        first_half(round, times_of(argv[1], round, 0));
        second_half(round, times_of(argv[1], round, 1));
    }
    /* by one rank, as launchers break lines of several; by a call that nobody records, as it is no part of the program */
    static int64_t all[RANKS][2][ROUNDS];
    CHECK(PMPI_Gather(worked, 2 * ROUNDS, MPI_INT64_T, all, 2 * ROUNDS, MPI_INT64_T, 0, MPI_COMM_WORLD) == MPI_SUCCESS);
    for (int of = 0; rank == 0 && of < RANKS; of++) {
        print_values("first_half", all[of][0], ROUNDS);
        print_values("second_half", all[of][1], ROUNDS);
    }
    MPI_Finalize();
    return 0;
}
