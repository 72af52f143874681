#include "progress.h"

#include "../base/clock.h"
#include "../base/mpi_api.h"
#include "../record/thread.h"

#include <errno.h>

enum { BLOCK = 64, FACTOR = 3, FIRST_IDLE_NS = 1000 };

/* What nothing found takes: the shortest of the last BLOCK tests and of those now. It changes, as when an MPI starts to
 * watch sockets; and a test behind computation, its code and data not in the caches, takes longer than one behind a
 * test. */
struct idle {
    uint64_t last, now;      /* ticks */
    unsigned count;
    uint64_t margin;         /* beyond FACTOR times as long: then something was found */
};

static struct idle after_computation, after_test;
static MPI_Comm ours;
static MPI_Request never;
static int is_open, is_posted;

static uint64_t shortest(const struct idle *idle)
{
    return idle->last && idle->last < idle->now ? idle->last : idle->now;
}

static void note(struct idle *idle, uint64_t ticks)
{
    if (idle->count++ % BLOCK == 0) {
        idle->last = idle->now;
        idle->now = ticks;
    } else if (ticks < idle->now) {
        idle->now = ticks;
    }
}

uint64_t progress_idle(void)
{
    return shortest(&after_computation);
}

int progress_idle_is_known(void)
{
    return after_computation.count > 0;
}

struct progress progress_test(int again)
{
    struct idle *idle = again ? &after_test : &after_computation;
    int saved_errno = errno, flag = 0;
    uint64_t begin = clock_now(), cpu_begin = clock_nanoseconds(CLOCK_THREAD_CPUTIME_ID);
    int error = mpi.Request_get_status(never, &flag, MPI_STATUS_IGNORE);
    uint64_t cpu_ns = clock_nanoseconds(CLOCK_THREAD_CPUTIME_ID) - cpu_begin;
    struct progress progress = {.used = clock_ticks(cpu_ns, spool_header()->nominal_ticks_per_ns),
                                .passed = clock_now() - begin,
                                .failed = error != MPI_SUCCESS};
    errno = saved_errno;
    progress.found = progress.used > FACTOR * shortest(idle) + idle->margin;
    note(idle, progress.used);
    return progress;
}

static void expect(struct idle *idle, double ticks_per_ns, double idle_ns, double margin_ns)
{
    *idle = (struct idle){.now = (uint64_t)(idle_ns * ticks_per_ns), .margin = (uint64_t)(margin_ns * ticks_per_ns)};
}

const char *progress_open(void)
{
    if (mpi.Comm_dup(mpi.comm_self, &ours) != MPI_SUCCESS)
        return "MPI makes no copy of MPI_COMM_SELF";
    mpi.Comm_set_errhandler(ours, mpi.errors_return);
    is_open = 1;
    return NULL;
}

const char *progress_prepare(void)
{
    static char byte;
    double ticks_per_ns = spool_header()->nominal_ticks_per_ns;
    if (is_posted)
        return NULL;
    if (mpi.Irecv(&byte, 1, mpi.byte, 0, 0, ours, &never) != MPI_SUCCESS)
        return "MPI posts no receive on a copy of MPI_COMM_SELF";
    is_posted = 1;
    expect(&after_computation, ticks_per_ns, FIRST_IDLE_NS, 2000);
    expect(&after_test, ticks_per_ns, FIRST_IDLE_NS, 500);
    for (int i = 0; i < BLOCK; i++)
        progress_test(1);
    return NULL;
}

void progress_close(void)
{
    if (!is_open)
        return;
    is_open = 0;
    if (is_posted) {
        is_posted = 0;
        mpi.Cancel(&never);
        mpi.Wait(&never, MPI_STATUS_IGNORE);
    }
    mpi.Comm_free(&ours);
}
