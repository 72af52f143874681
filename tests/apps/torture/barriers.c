/*
 * A write barrier, as garbage collectors and checkpoints have: pages that nobody may write, and a handler of faults on an alternate
 * stack which lets them be written. What is received is written there by whoever moves the message, an injected test among them.
 */
#include "traffic.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGES = 16, SHORT = 200, STEPS = 1500000, ROUNDS = 60, STACK = 64 << 10, TAG = 77 };

static char *pages;
static size_t page;
static volatile sig_atomic_t faults;

static void let_write(int signal, siginfo_t *info, void *context)
{
    char *at = info->si_addr;
    volatile char frame[4000]; /* as far down as handlers come */
    (void)signal;
    (void)context;
    for (size_t i = 0; i < sizeof frame; i++)
        frame[i] = (char)0xa5;
    if (at < pages || at >= pages + PAGES * page)
        _exit(99);
    mprotect(pages + (size_t)(at - pages) / page * page, page, PROT_READ | PROT_WRITE);
    faults++;
}

static void make_barrier(void)
{
    stack_t stack = {.ss_size = STACK, .ss_sp = malloc(STACK)};
    struct sigaction action = {.sa_sigaction = let_write, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    page = (size_t)sysconf(_SC_PAGESIZE);
    pages = mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(pages != MAP_FAILED && stack.ss_sp);
    CHECK(sigaltstack(&stack, NULL) == 0 && sigaction(SIGSEGV, &action, NULL) == 0);
}

static void work(int round)
{
    MPI_Request requests[PAGES];
    char sent[SHORT];
    CHECK(mprotect(pages, PAGES * page, PROT_READ) == 0);
    for (int i = 0; i < PAGES; i++)
        MPI_Irecv(pages + (size_t)i * page, SHORT, MPI_BYTE, traffic.peer, TAG + i, MPI_COMM_WORLD, &requests[i]);
    for (int i = 0; i < PAGES; i++) {
        fill(sent, SHORT, round + i + 64 * traffic.rank);
        MPI_Send(sent, SHORT, MPI_BYTE, traffic.peer, TAG + i, MPI_COMM_WORLD);
    }
    CHECK(arithmetic(STEPS) < 2.0);
    MPI_Waitall(PAGES, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < PAGES; i++)
        CHECK(holds(pages + (size_t)i * page, SHORT, round + i + 64 * traffic.peer));
}

int main(int argc, char **argv)
{
    int rank = start(&argc, &argv, 2);
    make_barrier();
    under_traffic(argc, argv, ROUNDS, work);
    CHECK(faults > 0);
    if (rank == 0)
        puts("let write");
    MPI_Finalize();
    return 0;
}
