/*
 * Processes that are looked at from outside, and are odd. Not an MPI program.
 *
 *   odd deep      deep in itself, asleep
 *   odd endless   deeper than anybody looks
 *   odd signal    asleep in a handler of a signal, on a stack of its own
 *   odd traced    on a processor, with a tracer that is not lapscope
 *   odd asleep    asleep in three functions, to be stripped
 *   odd naps      five threads that fall asleep again and again in calls which no signal lets begin anew, until standard input ends;
 *                 then it prints how many calls were interrupted, and how many there were
 *   odd spins N   N threads on a processor
 *   odd headless  its first thread has ended, and another one is asleep
 *   odd zombie    a child that has ended, and that nobody has waited for
 *
 * Each prints the number of the process to be looked at.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SITE __attribute__((noinline, noipa))

static volatile int never;

static void here(void)
{
    printf("%ld\n", (long)getpid());
    fflush(stdout);
}

SITE int deep(int left)
{
    if (!left) {
        here();
        pause();
    }
    return left ? deep(left - 1) + never : 0;
}

SITE int sleeps(void)
{
    here();
    return pause() + never;
}

SITE int calls(void)
{
    return sleeps() + never;
}

SITE void on_signal(int signal)
{
    (void)signal;
    sleeps();
}

SITE int is_interrupted(void)
{
    enum { BYTES = 1 << 16 };
    stack_t stack = {.ss_sp = malloc(BYTES), .ss_size = BYTES};
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
    if (sigaltstack(&stack, NULL) || sigaction(SIGUSR1, &action, NULL))
        return 1;
    return raise(SIGUSR1) + never;
}

static int traced(void)
{
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        here();
        while (!never)
            ;
    }
    return pause();
}

/* --- short sleeps: signal(7), "Interruption of system calls" --- */

static const struct timespec nap = {.tv_nsec = 50000};

static int nap_by_epoll(int set)
{
    struct epoll_event event;
    return epoll_wait(set, &event, 1, 1);
}

static int nap_by_socket(int socket)
{
    char byte;
    return (int)recv(socket, &byte, 1, 0);
}

static int nap_by_accept(int socket)
{
    return accept(socket, NULL, NULL);
}

static int nap_by_signal(int unused)
{
    sigset_t set;
    (void)unused;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    return sigtimedwait(&set, NULL, &nap);
}

static int nap_by_semaphore(int set)
{
    struct sembuf take = {.sem_op = -1};
    return semtimedop(set, &take, 1, &nap);
}

struct napper {
    int (*nap)(int);
    int argument;
};

static volatile int is_over;
static int interrupted, naps;

static void *naps_again_and_again(void *given)
{
    const struct napper *napper = given;
    while (!is_over) {
        if (napper->nap(napper->argument) < 0 && errno == EINTR)
            __atomic_fetch_add(&interrupted, 1, __ATOMIC_RELAXED);
        __atomic_fetch_add(&naps, 1, __ATOMIC_RELAXED);
        for (volatile int i = 0; i < 20000; i++) /* about as long on a processor */
            ;
    }
    return NULL;
}

static void limit_receives(int socket)
{
    struct timeval limit = {.tv_usec = 50};
    setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
}

static int takes_naps(void)
{
    enum { KINDS = 5 };
    int pair[2], listening = socket(AF_UNIX, SOCK_STREAM, 0), semaphores = semget(IPC_PRIVATE, 1, 0600);
    pthread_t threads[KINDS];
    sa_family_t address = AF_UNIX; /* a name that the kernel chooses: unix(7) */
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) || bind(listening, (struct sockaddr *)&address, sizeof address) ||
        listen(listening, 1) || semaphores < 0)
        return 1;
    limit_receives(pair[0]);
    limit_receives(listening);
    struct napper nappers[KINDS] = {
        {nap_by_epoll, epoll_create1(0)}, {nap_by_socket, pair[0]}, {nap_by_accept, listening}, {nap_by_signal, 0},
        {nap_by_semaphore, semaphores},
    };
    for (int i = 0; i < KINDS; i++)
        pthread_create(&threads[i], NULL, naps_again_and_again, &nappers[i]);
    here();
    while (getchar() != EOF)
        ;
    is_over = 1;
    for (int i = 0; i < KINDS; i++)
        pthread_join(threads[i], NULL);
    semctl(semaphores, 0, IPC_RMID);
    printf("%d of %d interrupted\n", interrupted, naps);
    return 0;
}

/* --- threads --- */

static void *spins(void *unused)
{
    while (!never)
        ;
    return unused;
}

static int spin(int threads)
{
    pthread_t thread;
    for (int i = 0; i < threads; i++)
        pthread_create(&thread, NULL, spins, NULL);
    here();
    return pause();
}

SITE void *outlives_main(void *unused)
{
    here();
    pause();
    return unused;
}

static void end_the_first_thread(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, outlives_main, NULL);
    pthread_exit(NULL);
}

static int leave_a_zombie(void)
{
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    siginfo_t info;
    waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT);
    printf("%ld\n", (long)child);
    fflush(stdout);
    return pause();
}

int main(int argc, char **argv)
{
    enum { FRAMES = 20000, TOO_MANY = 80000 };
    alarm(120); /* a test that is interrupted leaves it behind */
    const char *kind = argc > 1 ? argv[1] : "";
    if (!strcmp(kind, "naps"))
        return takes_naps();
    if (!strcmp(kind, "spins"))
        return spin(argc > 2 ? atoi(argv[2]) : 1);
    if (!strcmp(kind, "headless"))
        end_the_first_thread();
    if (!strcmp(kind, "zombie"))
        return leave_a_zombie();
    if (!strcmp(kind, "deep"))
        return deep(FRAMES) + never;
    if (!strcmp(kind, "endless"))
        return deep(TOO_MANY) + never;
    if (!strcmp(kind, "signal"))
        return is_interrupted() + never;
    if (!strcmp(kind, "traced"))
        return traced();
    return calls() + never;
}
