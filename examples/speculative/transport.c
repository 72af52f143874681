/* See transport.h. */
#define _GNU_SOURCE
#include "transport.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../common/measure.h"

enum { RANKS = 2, SLOTS = 64 };

struct slot {
    struct message message;
    double arrives_us;
    char data[MOST_EAGER];
};

/* Filled by one thread of one process and emptied by one thread of the other. */
struct ring {
    _Atomic uint64_t filled, emptied;
    double last_arrival_us; /* of who fills it */
    struct slot slots[SLOTS];
};

/* From each rank a ring that its layer fills and one that its engine fills. */
enum source { FROM_LAYER, FROM_NIC, SOURCES };

struct region {
    struct ring rings[RANKS][SOURCES];
    _Atomic uint64_t barriers[RANKS];
    double start_us;
    char rooms[RANKS][SHARED_BYTES];
};

/* Of this process: a message for which the ring had no room. */
struct waiting {
    struct waiting *next;
    struct message message;
    char data[];
};

struct link the_link;
int rank;
pid_t other;

static struct region *region;
static struct waiting *first_waiting, **last_waiting = &first_waiting;
static struct ring *arrived_in;

/* --- the two processes -------------------------------------------------------------------------------------------- */

void fail(const char *format, ...)
{
    va_list values;
    fflush(stdout);
    fprintf(stderr, "speculative: ");
    va_start(values, format);
    vfprintf(stderr, format, values);
    va_end(values);
    fprintf(stderr, "\n");
    _exit(EXIT_WRONG);
}

/*
 * The partner ends with this process by itself (PR_SET_PDEATHSIG); here it is the other way round. One that failed has said
 * why; one that is through with everything is waited for in end_transport.
 */
static void follow_partner(void)
{
    siginfo_t end = {.si_pid = 0};
    if (rank != 0 || waitid(P_PID, (id_t)other, &end, WEXITED | WNOHANG | WNOWAIT) != 0 || end.si_pid != other)
        return;
    if (end.si_code != CLD_EXITED)
        fail("the partner was ended by signal %d", end.si_status);
    if (end.si_status != 0)
        _exit(end.si_status);
}

/* Reads a value of the other process and writes it back: what all data will be moved with. Returns an error, 0 for none. */
static int reach_other(uint64_t *value)
{
    uint64_t copy = 0;
    struct iovec here = {&copy, sizeof copy}, there = {value, sizeof *value};
    int is_reached = process_vm_readv(other, &here, 1, &there, 1, 0) == sizeof copy &&
                     process_vm_writev(other, &here, 1, &there, 1, 0) == sizeof copy;
    return is_reached ? 0 : errno;
}

/* Both processes must be let: Yama may let a parent reach its child and not the other way round. */
static void check_reach(void)
{
    static uint64_t probe; /* at the same address in both */
    int *errors[RANKS] = {shared_room(0), shared_room(1)};
    *errors[rank] = reach_other(&probe);
    wait_for_other();
    int error = *errors[0] ? *errors[0] : *errors[1];
    if (!error)
        return;
    if (rank == 1)
        for (;;)
            pause(); /* ends with rank 0 */
    fprintf(stderr,
            "speculative: one process may not read and write the memory of another here: process_vm_readv, process_vm_writev: "
            "%s.\n%s\n",
            strerror(error),
            error == ENOSYS ? "This kernel was built without them (CONFIG_CROSS_MEMORY_ATTACH), or a container hides them."
                            : "What forbids it may be a container's seccomp filter (Docker: --cap-add SYS_PTRACE) or Yama "
                              "(/proc/sys/kernel/yama/ptrace_scope above 1).");
    _exit(EXIT_REFUSED);
}

static void fork_partner(void)
{
    pid_t parent = getpid();
    pid_t child = fork();
    if (child < 0)
        fail("fork: %s", strerror(errno));
    rank = child == 0;
    other = child == 0 ? parent : child;
    if (rank == 1 && (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent))
        _exit(EXIT_WRONG);
    /* with Yama the child may reach its parent only where that allows it; where there is no Yama this fails, and is not needed */
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
    prctl(PR_SET_TIMERSLACK, 1UL);
}

void start_transport(const struct link *link)
{
    the_link = *link;
    region = mmap(NULL, sizeof *region, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (region == MAP_FAILED)
        fail("no shared memory: %s", strerror(errno));
    fork_partner();
    wait_for_other();
    check_reach();
    wait_for_other();
}

int end_transport(int code)
{
    int status;
    wait_for_other();
    if (rank == 1)
        exit(code);
    if (waitpid(other, &status, 0) != other || !WIFEXITED(status))
        return EXIT_WRONG;
    return code ? code : WEXITSTATUS(status);
}

void rest_a_little(void)
{
    enum { POLLS = 8, NAP_NS = 10000 };
    static unsigned polls;
    if (++polls % POLLS)
        return;
    follow_partner();
    nanosleep(&(struct timespec){0, NAP_NS}, NULL);
}

void enter_barrier(void)
{
    atomic_fetch_add(&region->barriers[rank], 1);
}

int barrier_is_over(void)
{
    return atomic_load(&region->barriers[1 - rank]) >= atomic_load(&region->barriers[rank]);
}

void wait_for_other(void)
{
    enter_barrier();
    while (!barrier_is_over())
        rest_a_little();
}

void start_together(void)
{
    enum { AHEAD_US = 200 }; /* longer than a nap of who waits */
    if (rank == 0)
        region->start_us = now_us() + AHEAD_US;
    wait_for_other();
    double start = region->start_us;
    while (now_us() < start) {
    }
}

void *shared_room(int of_rank)
{
    return region->rooms[of_rank];
}

/* --- messages ----------------------------------------------------------------------------------------------------- */

static size_t data_bytes(const struct message *message)
{
    return message->kind == EAGER ? message->bytes : 0;
}

/* Returns whether there was room. */
static int fill_slot(struct ring *ring, const struct message *message, const void *data)
{
    uint64_t filled = atomic_load_explicit(&ring->filled, memory_order_relaxed);
    if (filled - atomic_load_explicit(&ring->emptied, memory_order_acquire) == SLOTS)
        return 0;
    struct slot *slot = &ring->slots[filled % SLOTS];
    size_t bytes = data_bytes(message);
    double arrives = now_us() + (double)bytes / the_link.bytes_per_us;
    if (message->kind != WRITTEN) /* which comes right behind the data, and they have had their latency */
        arrives += the_link.latency_us;
    slot->message = *message;
    slot->arrives_us = arrives > ring->last_arrival_us ? arrives : ring->last_arrival_us;
    ring->last_arrival_us = slot->arrives_us;
    if (bytes)
        memcpy(slot->data, data, bytes);
    atomic_store_explicit(&ring->filled, filled + 1, memory_order_release);
    return 1;
}

static void keep_waiting(const struct message *message, const void *data)
{
    size_t bytes = data_bytes(message);
    struct waiting *kept = malloc(sizeof *kept + bytes);
    if (!kept)
        fail("no memory for a message");
    kept->next = NULL;
    kept->message = *message;
    if (bytes)
        memcpy(kept->data, data, bytes);
    *last_waiting = kept;
    last_waiting = &kept->next;
}

void send_message(const struct message *message, const void *data)
{
    flush_messages();
    if (first_waiting || !fill_slot(&region->rings[rank][FROM_LAYER], message, data))
        keep_waiting(message, data);
}

void flush_messages(void)
{
    struct waiting *next;
    while (first_waiting &&
           fill_slot(&region->rings[rank][FROM_LAYER], &first_waiting->message, first_waiting->data)) {
        next = first_waiting->next;
        free(first_waiting);
        first_waiting = next;
    }
    if (!first_waiting)
        last_waiting = &first_waiting;
}

int messages_wait(void)
{
    return first_waiting != NULL;
}

void send_message_from_nic(const struct message *message)
{
    while (!fill_slot(&region->rings[rank][FROM_NIC], message, NULL))
        nanosleep(&(struct timespec){0, 100000}, NULL);
}

const struct message *arrived_message(const void **data)
{
    for (int source = 0; source < SOURCES; source++) {
        struct ring *ring = &region->rings[1 - rank][source];
        uint64_t emptied = atomic_load_explicit(&ring->emptied, memory_order_relaxed);
        if (atomic_load_explicit(&ring->filled, memory_order_acquire) == emptied)
            continue;
        const struct slot *slot = &ring->slots[emptied % SLOTS];
        if (slot->arrives_us > now_us())
            continue;
        arrived_in = ring;
        *data = slot->data;
        return &slot->message;
    }
    return NULL;
}

void take_message(void)
{
    atomic_fetch_add_explicit(&arrived_in->emptied, 1, memory_order_release);
}
