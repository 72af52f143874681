/*
 * A program that starts others while messages are under way: by posix_spawn, by vfork, and by a clone that shares its memory and runs
 * on a stack from malloc. Prints what they returned, and what arrived.
 */
#include "work.h"

#include <sched.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STACK_BYTES = 1 << 16, BYTES = 1 << 20 };

extern char **environ;
static char sent[BYTES], received[BYTES];
static volatile int written;

static int code_of(pid_t child)
{
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int writes(void *value)
{
    written = *(int *)value;
    return 3;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Request requests[2];
    fill(sent, BYTES, 5);
    MPI_Irecv(received, BYTES, MPI_BYTE, 0, 0, MPI_COMM_SELF, &requests[0]);
    MPI_Isend(sent, BYTES, MPI_BYTE, 0, 0, MPI_COMM_SELF, &requests[1]);
    pid_t child;
    char *arguments[] = {"sh", "-c", "exit 4", NULL};
    CHECK(posix_spawn(&child, "/bin/sh", NULL, NULL, arguments, environ) == 0);
    int spawned = code_of(child);
    if ((child = vfork()) == 0) {
        execv("/bin/sh", arguments);
        _exit(1);
    }
    int forked = code_of(child), value = 17;
    char *stack = malloc(STACK_BYTES);
    CHECK(stack);
    child = clone(writes, stack + STACK_BYTES, CLONE_VM | SIGCHLD, &value);
    CHECK(child > 0);
    int cloned = code_of(child);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    printf("%d %d %d, wrote %d, arrived %d\n", spawned, forked, cloned, written, holds(received, BYTES, 5));
    free(stack);
    MPI_Finalize();
    return 0;
}
