/* A program with a clock_gettime in its own executable, which MPI calls, too, and which takes a lock: whoever interrupts it
 * there and reads the clock waits for ever. */
#include "traffic.h"

#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { READINGS = 500, LONG = 3000, ROUNDS = 40 };

static volatile int lock;

int clock_gettime(clockid_t clock, struct timespec *now)
{
    while (__sync_lock_test_and_set(&lock, 1))
        sched_yield();
    for (volatile int i = 0; i < LONG; i++)
        ;
    int result = (int)syscall(SYS_clock_gettime, clock, now);
    __sync_lock_release(&lock);
    return result;
}

static void work(int round)
{
    struct timespec now;
    (void)round;
    for (int i = 0; i < READINGS; i++)
        CHECK(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
}

int main(int argc, char **argv)
{
    int rank = start(&argc, &argv, 2);
    under_traffic(argc, argv, ROUNDS, work);
    if (rank == 0)
        puts("read");
    MPI_Finalize();
    return 0;
}
