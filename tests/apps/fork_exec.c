/*
 * Children in the middle of an MPI program: one that calls _exit, one that calls exit (and so runs every destructor),
 * one that becomes /bin/true with LD_PRELOAD inherited, and one through system().
 * Rows: those of the parent only, all of them.
 */
#include "check.h"

#include <sys/wait.h>
#include <unistd.h>

enum { BYTES = 8, TAG = 2 };

static void exchange(int peer)
{
    char out[BYTES], in[BYTES];
    MPI_Request requests[2];
    fill(out, BYTES, TAG);
    MPI_Irecv(in, BYTES, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(out, BYTES, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    CHECK(holds(in, BYTES, TAG));
}

static int exit_code_of(pid_t child)
{
    int status;
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int main(int argc, char **argv)
{
    int rank = start(&argc, &argv, 2), peer = 1 - rank;
    pid_t child;
    exchange(peer);
    if ((child = fork()) == 0)
        _exit(11);
    CHECK(exit_code_of(child) == 11);
    exchange(peer);
    if ((child = fork()) == 0)
        exit(12);
    CHECK(exit_code_of(child) == 12);
    exchange(peer);
    if ((child = fork()) == 0) {
        execl("/bin/true", "true", (char *)NULL);
        _exit(13);
    }
    CHECK(exit_code_of(child) == 0);
    exchange(peer);
    CHECK(WEXITSTATUS(system("exit 14")) == 14);
    exchange(peer);
    if (rank == 0)
        puts("eleven, twelve, true, fourteen");
    MPI_Finalize();
    return 0;
}
