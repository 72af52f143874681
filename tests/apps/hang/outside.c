/* Programs in which all wait for a rank that is not in MPI, or in which a thread is not. */
#include "hang.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/time.h>
#include <sys/wait.h>

static volatile sig_atomic_t never;

/* Rank 1 computes and does not come to an end. Three ranks. */
SITE void computes_for_ever(void)
{
    here();
    while (rank == 1 && !never)
        computes(0.01);
    good_rounds(1);
}

/* Rank 1 reads from a pipe into which nobody writes. Three ranks. */
SITE void reads_from_nobody(void)
{
    char byte;
    int ends[2];
    CHECK(pipe(ends) == 0);
    here();
    if (rank == 1)
        CHECK(read(ends[0], &byte, 1) == 1);
    good_rounds(1);
}

/* Rank 1 waits for a child that does not end. Three ranks. */
SITE void waits_for_child(void)
{
    here();
    if (rank == 1) {
        pid_t child = fork();
        if (child == 0)
            for (;;)
                pause();
        CHECK(waitpid(child, NULL, 0) == child);
    }
    good_rounds(1);
}

/* Rank 1 wants a lock of a file that rank 0 holds while it waits for rank 1. */
SITE void wants_locked_file(void)
{
    char name[64] = "";
    snprintf(name, sizeof name, "/tmp/lapscope-hang-%ld", (long)getpid());
    MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);
    if (rank == 0)
        CHECK(flock(open(name, O_RDWR | O_CREAT, 0600), LOCK_EX) == 0);
    MPI_Barrier(MPI_COMM_WORLD);
    int file = rank == 1 ? open(name, O_RDWR) : -1;
    MPI_Barrier(MPI_COMM_WORLD);
    unlink(name);
    here();
    if (rank == 1)
        CHECK(flock(file, LOCK_EX) == 0);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Rank 1 is stopped, as by a debugger or a terminal. Three ranks. */
SITE void stopped(void)
{
    here();
    if (rank == 1)
        raise(SIGSTOP);
    good_rounds(1);
}

/* Rank 1 is killed, and its launcher leaves the others alone. Three ranks. */
SITE void killed(void)
{
    here();
    if (rank == 1)
        raise(SIGKILL);
    good_rounds(1);
}

SITE void aborts(int signal)
{
    (void)signal;
    abort();
}

/* Rank 1 aborts inside of a call, as where a library below MPI fails. Three ranks. */
SITE void aborts_within(void)
{
    static const struct itimerval soon = {.it_value.tv_usec = 100000};
    here();
    if (rank == 1) {
        signal(SIGALRM, aborts);
        CHECK(setitimer(ITIMER_REAL, &soon, NULL) == 0);
        receive_small(0, OTHER_TAG, MPI_COMM_WORLD);
    }
    good_rounds(1);
}

/* Rank 1 ends without a word, and its launcher leaves the others alone. Three ranks. */
SITE void exits(void)
{
    here();
    if (rank == 1)
        _exit(0);
    good_rounds(1);
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

SITE void *sends_under_lock(void *unused)
{
    pthread_mutex_lock(&lock);
    send_small(1, TAG, MPI_COMM_WORLD);
    pthread_mutex_unlock(&lock);
    return unused;
}

/* A thread of rank 0 receives while it holds the lock that the other thread needs to send what rank 1 waits for. */
SITE void lock_held(void)
{
    pthread_t thread;
    if (rank == 0) {
        pthread_mutex_lock(&lock);
        CHECK(pthread_create(&thread, NULL, sends_under_lock, NULL) == 0);
    }
    here();
    receive_small(1 - rank, TAG, MPI_COMM_WORLD);
    if (rank == 0)
        pthread_mutex_unlock(&lock);
    else
        send_small(0, TAG, MPI_COMM_WORLD);
}

SITE void *receives_from_other(void *unused)
{
    MPI_Recv(to_others, SMALL, MPI_BYTE, 1 - rank, OTHER_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return unused;
}

/* Two threads of each rank receive, each what a thread of the other rank would send behind its receive. */
SITE void all_threads_receive(void)
{
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, receives_from_other, NULL) == 0);
    here();
    receive_small(1 - rank, TAG, MPI_COMM_WORLD);
    pthread_join(thread, NULL);
}

int main(int argc, char **argv)
{
    static const struct program programs[] = {PROGRAM(computes_for_ever), PROGRAM(reads_from_nobody), PROGRAM(waits_for_child),
        PROGRAM(wants_locked_file), PROGRAM(stopped), PROGRAM(killed), PROGRAM(aborts_within), PROGRAM(exits), PROGRAM(lock_held),
        PROGRAM(all_threads_receive)};
    if (is_asked(argc, argv, "before_init")) {
        here();
        sleeps(60.0);
    }
    return RUN_PROGRAM(argc, argv, MPI_THREAD_MULTIPLE, programs);
}
