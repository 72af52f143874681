/* Calls that start, end or steer MPI. */
#include "wrappers.h"

#include "recorder.h"

/* The first call that an application makes of MPI need not be MPI_Init, but nothing is recorded before it. */
static int starting; /* MPI_Init of some MPIs calls MPI_Init_thread */

struct start {
    struct spool_clock_pair pair;
    int64_t unix_ns;
    uint64_t begin;
};

static struct start start_now(void)
{
    struct start start = {.pair = clock_pair(), .unix_ns = (int64_t)clock_nanoseconds(CLOCK_REALTIME)};
    start.begin = start.pair.ticks;
    return start;
}

static void started(const struct start *start, enum call call, struct caller caller)
{
    recorder_start(start->pair, start->unix_ns);
    struct thread *t = enter();
    if (!t)
        return;
    struct span span;
    call_begin(&span, t, call, caller, NULL);
    span.begin = start->begin;
    span.end = spool_header()->init_end;
    record_call(&span, NULL, NULL);
    leave(t);
}

int wrap_MPI_Init(int *argc, char ***argv)
{
    if (starting || recorder_state != RECORDER_OFF)
        return REAL(MPI_Init)(argc, argv);
    starting = 1;
    struct start start = start_now();
    int error = REAL(MPI_Init)(argc, argv);
    if (error == MPI_SUCCESS)
        started(&start, CALL_MPI_Init, CALLER());
    return error;
}

int wrap_MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    if (starting || recorder_state != RECORDER_OFF)
        return REAL(MPI_Init_thread)(argc, argv, required, provided);
    starting = 1;
    struct start start = start_now();
    int error = REAL(MPI_Init_thread)(argc, argv, required, provided);
    if (error == MPI_SUCCESS)
        started(&start, CALL_MPI_Init_thread, CALLER());
    return error;
}

int wrap_MPI_Finalize(void)
{
    struct thread *t = enter();
    if (!t)
        return REAL(MPI_Finalize)();
    struct span span;
    call_begin(&span, t, CALL_MPI_Finalize, CALLER(), NULL);
    spool_header()->finalize_begin = span.begin;
    int error = REAL(MPI_Finalize)();
    call_stamp(&span);
    record_call(&span, NULL, NULL);
    leave(t);
    recorder_stop(SPOOL_FINALIZED);
    return error;
}

int wrap_MPI_Abort(MPI_Comm comm, int code)
{
    struct thread *t = enter();
    if (t) {
        struct span span;
        call_begin(&span, t, CALL_MPI_Abort, CALLER(), NULL);
    }
    recorder_stop(SPOOL_ABORTED); /* also from within an error handler; the real call does not come back */
    return REAL(MPI_Abort)(comm, code);
}

/* 0 stops recording, anything else resumes it (the levels of MPI-4.1 15.2.4, as other profilers take them). */
int wrap_MPI_Pcontrol(const int level, ...)
{
    if (recorder_state != RECORDER_OFF)
        recorder_state = level == 0 ? RECORDER_PAUSED : RECORDER_ON;
    return REAL(MPI_Pcontrol)(level);
}
