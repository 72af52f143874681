/*
 * Processes started while messages are pending: by fork, posix_spawn, system and popen. They run undisturbed, with no signal blocked
 * or left to be handled, and are waited for without an interruption.
 */
#include "traffic.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STEPS = 200000, ROUNDS = 60 };

extern char **environ;

static void wait_for(pid_t child, int code)
{
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == code);
}

/* The child computes with what it has of its parent, MPI left alone. */
static void fork_a_child(int round)
{
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        sigset_t blocked;
        int bad = sigprocmask(SIG_SETMASK, NULL, &blocked) != 0 || sigismember(&blocked, SIGURG);
        _exit(bad || arithmetic(STEPS) > 2.0 ? 1 : 2 + round % 100);
    }
    CHECK(arithmetic(STEPS) < 2.0);
    wait_for(child, 2 + round % 100);
}

static void spawn_a_program(void)
{
    char *const line[] = {"sh", "-c", "exit 7", NULL};
    pid_t child;
    CHECK(posix_spawn(&child, "/bin/sh", NULL, NULL, line, environ) == 0);
    wait_for(child, 7);
}

static void ask_a_shell(int round)
{
    char line[64], said[64];
    snprintf(line, sizeof line, "echo %d", round);
    FILE *answer = popen(line, "r");
    CHECK(answer && fgets(said, sizeof said, answer) && atoi(said) == round);
    CHECK(pclose(answer) == 0);
    int status = system("exit 3");
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 3);
}

static void work(int round)
{
    fork_a_child(round);
    spawn_a_program();
    ask_a_shell(round);
}

int main(int argc, char **argv)
{
    int rank = start(&argc, &argv, 2);
    under_traffic(argc, argv, ROUNDS, work);
    if (rank == 0)
        puts("forked, spawned, asked");
    MPI_Finalize();
    return 0;
}
