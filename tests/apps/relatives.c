/*
 * Each rank receives what nobody sends, in a thread, while its first thread has ended; it has a child, a copy of it, that sleeps. Before
 * that the ranks spawn two more, where this MPI can do so; rank 0 prints how many there are.
 */
#include "check.h"

#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

static void leave_a_copy(void)
{
    if (fork() == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* the thread's death that has forked it */
        for (;;)
            pause();
    }
}

static void *receive(void *unused)
{
    int number;
    leave_a_copy();
    MPI_Recv(&number, 1, MPI_INT, MPI_ANY_SOURCE, 7, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    return unused;
}

static int spawn(char *program)
{
    enum { CHILDREN = 2 };
    MPI_Comm children;
    int codes[CHILDREN];
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    return MPI_Comm_spawn(program, MPI_ARGV_NULL, CHILDREN, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children, codes) == MPI_SUCCESS
               ? CHILDREN
               : 0;
}

int main(int argc, char **argv)
{
    int provided, ranks = 0;
    pthread_t thread;
    MPI_Comm parents;
    alarm(300); /* a test that is interrupted leaves it behind */
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_get_parent(&parents);
    if (parents == MPI_COMM_NULL)
        ranks = comm_size(MPI_COMM_WORLD) + spawn(argv[0]);
    if (pthread_create(&thread, NULL, receive, NULL))
        return 1;
    if (parents == MPI_COMM_NULL)
        fprintf(stderr, "here %d %d\n", comm_rank(MPI_COMM_WORLD), ranks);
    pthread_exit(NULL);
}
