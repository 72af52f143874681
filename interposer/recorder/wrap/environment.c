/* Calls that start, end or steer MPI: by MPI_Init or by sessions, or both. */
#include "wrap_fortran.h"

#include "../base/own_stack.h"
#include "../inject/inject.h"
#include "../profile/profile.h"
#include "../record/device.h"
#include "../record/facts.h"
#include "../record/meter.h"
#include "../record/processor.h"
#include "../record/sample.h"
#include "../sends/sends.h"
#include "recorder.h"

#include <pthread.h>

/* The first call that an application makes of MPI need not be one of these, but nothing is recorded before them, and
 * recording starts once: MPI_Init of some MPIs calls MPI_Init_thread, Fortran's calls C's. */
static struct {
    pthread_mutex_t lock;
    int begun;                    /* the first of them was called */
    int initialized, finalized;   /* MPI_Init, MPI_Finalize */
    int open_sessions;
    MPI_Session world_session;    /* whose process set ranks are counted in where there is no MPI_COMM_WORLD */
    MPI_Group world;
    int has_world_session;
} state = {.lock = PTHREAD_MUTEX_INITIALIZER};

struct start {
    struct spool_clock_pair pair;
    int64_t unix_ns;
    uint64_t begin;
};

/* Whether this call is the one that starts MPI. */
static int begins(struct start *start)
{
    if (recorder_state != RECORDER_OFF || __atomic_exchange_n(&state.begun, 1, __ATOMIC_RELAXED))
        return 0;
    *start = (struct start){.pair = clock_pair(), .unix_ns = (int64_t)clock_nanoseconds(CLOCK_REALTIME)};
    start->begin = start->pair.ticks;
    profile_before_start();
    return 1;
}

/* The row of the call that started MPI. */
static void record_first_call(const struct start *start, enum call call, struct caller caller)
{
    struct thread *t = enter();
    if (!t)
        return;
    struct span span;
    span_begin(&span, t, call, caller, NULL);
    span.begin = start->begin;
    span.end = spool_header()->init_end;
    record_call(&span, NULL, NULL);
    if (t->meter)
        meter_leave(t->meter); /* what is counted from here on is outside of MPI */
    leave(t);
}

/* --- MPI_Init ----------------------------------------------------------------------------------------------------- */

static struct recorder_place place_in_world(void)
{
    struct recorder_place place = {0};
    int level = MPI_THREAD_SINGLE;
    mpi.Comm_rank(mpi.comm_world, &place.rank);
    mpi.Comm_size(mpi.comm_world, &place.world_size);
    mpi.Query_thread(&level);
    level = inject_tells(level);
    place.thread_level = level == MPI_THREAD_SINGLE       ? 0
                         : level == MPI_THREAD_FUNNELED   ? 1
                         : level == MPI_THREAD_SERIALIZED ? 2
                                                          : 3;
    return place;
}

static void world_is_there(void)
{
    state.initialized = 1;
    if (recorder_state != RECORDER_OFF)
        recorder_know_world();
}

static void initialized(const struct start *start, enum call call, struct caller caller)
{
    struct recorder_place place = place_in_world();
    recorder_start(start->pair, start->unix_ns, &place);
    world_is_there();
    record_first_call(start, call, caller);
    processor_begin(current_thread);
}

/* MPI_Init of a process that has sessions already. */
static struct thread *begin_second_start(struct span *span, enum call call, struct caller caller)
{
    struct thread *t = state.open_sessions && !state.initialized ? enter() : NULL;
    if (t)
        span_begin(span, t, call, caller, NULL);
    return t;
}

static void end_second_start(struct span *span, struct thread *t, int error)
{
    if (!t)
        return;
    span_stamp(span);
    record_call(span, NULL, NULL);
    if (error == MPI_SUCCESS)
        world_is_there();
    leave(t);
}

int wrap_C_MPI_Init(int *argc, char ***argv)
{
    struct start start;
    struct span span;
    int first = begins(&start);
    struct thread *t = first ? NULL : begin_second_start(&span, CALL_MPI_Init, CALLER());
    inject_before_plain_start();
    int error = REAL(C_MPI_Init)(argc, argv);
    inject_behind_start();
    if (first && error == MPI_SUCCESS)
        initialized(&start, CALL_MPI_Init, CALLER());
    end_second_start(&span, t, error);
    return error;
}

int wrap_C_MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    struct start start;
    struct span span;
    int first = begins(&start);
    struct thread *t = first ? NULL : begin_second_start(&span, CALL_MPI_Init_thread, CALLER());
    int error = REAL(C_MPI_Init_thread)(argc, argv, inject_before_start(required), provided);
    inject_behind_start();
    if (error == MPI_SUCCESS)
        *provided = inject_tells(*provided);
    if (first && error == MPI_SUCCESS)
        initialized(&start, CALL_MPI_Init_thread, CALLER());
    end_second_start(&span, t, error);
    return error;
}

static inline ALWAYS_INLINE void fortran_init(F_MPI_Init_fn *real, MPI_Fint *ierror)
{
    MPI_Fint own_error = MPI_SUCCESS;
    struct start start;
    struct span span;
    int first = begins(&start);
    ierror = ierror ? ierror : &own_error;
    struct thread *t = first ? NULL : begin_second_start(&span, CALL_MPI_Init, CALLER());
    inject_before_plain_start();
    real(ierror);
    inject_behind_start();
    if (first && *ierror == MPI_SUCCESS)
        initialized(&start, CALL_MPI_Init, CALLER());
    end_second_start(&span, t, *ierror);
}

static inline ALWAYS_INLINE void fortran_init_thread(F_MPI_Init_thread_fn *real, const MPI_Fint *required, MPI_Fint *provided,
                                                     MPI_Fint *ierror)
{
    MPI_Fint own_error = MPI_SUCCESS;
    struct start start;
    struct span span;
    int first = begins(&start);
    ierror = ierror ? ierror : &own_error;
    struct thread *t = first ? NULL : begin_second_start(&span, CALL_MPI_Init_thread, CALLER());
    MPI_Fint asked = inject_before_start(*required);
    real(&asked, provided, ierror);
    inject_behind_start();
    if (*ierror == MPI_SUCCESS)
        *provided = inject_tells(*provided);
    if (first && *ierror == MPI_SUCCESS)
        initialized(&start, CALL_MPI_Init_thread, CALLER());
    end_second_start(&span, t, *ierror);
}

void wrap_F_MPI_Init(MPI_Fint *ierror)
{
    fortran_init(REAL(F_MPI_Init), ierror);
}

void wrap_F08_MPI_Init(MPI_Fint *ierror)
{
    fortran_init(REAL(F08_MPI_Init), ierror);
}

void wrap_F_MPI_Init_thread(const MPI_Fint *required, MPI_Fint *provided, MPI_Fint *ierror)
{
    fortran_init_thread(REAL(F_MPI_Init_thread), required, provided, ierror);
}

void wrap_F08_MPI_Init_thread(const MPI_Fint *required, MPI_Fint *provided, MPI_Fint *ierror)
{
    fortran_init_thread(REAL(F08_MPI_Init_thread), required, provided, ierror);
}

/* --- MPI_Query_thread --------------------------------------------------------------------------------------------- */

int wrap_C_MPI_Query_thread(int *provided)
{
    int error = REAL(C_MPI_Query_thread)(provided);
    if (error == MPI_SUCCESS)
        *provided = inject_tells(*provided);
    return error;
}

static inline void fortran_query_thread(F_MPI_Query_thread_fn *real, MPI_Fint *provided, MPI_Fint *ierror)
{
    MPI_Fint own_error = MPI_SUCCESS;
    ierror = ierror ? ierror : &own_error;
    real(provided, ierror);
    if (*ierror == MPI_SUCCESS)
        *provided = inject_tells(*provided);
}

void wrap_F_MPI_Query_thread(MPI_Fint *provided, MPI_Fint *ierror)
{
    fortran_query_thread(REAL(F_MPI_Query_thread), provided, ierror);
}

void wrap_F08_MPI_Query_thread(MPI_Fint *provided, MPI_Fint *ierror)
{
    fortran_query_thread(REAL(F08_MPI_Query_thread), provided, ierror);
}

/* --- sessions ----------------------------------------------------------------------------------------------------- */

/* Ranks are counted in the process set mpi://WORLD; 0 when the session has none. */
static int find_world_of(MPI_Session session, struct recorder_place *place)
{
    *place = (struct recorder_place){.thread_level = 3}; /* what a session may use is not asked for: assume threads */
    if (state.initialized || state.has_world_session || !mpi.Group_from_session_pset ||
        mpi.Group_from_session_pset(session, "mpi://WORLD", &state.world) != MPI_SUCCESS)
        return 0;
    mpi.Group_rank(state.world, &place->rank);
    mpi.Group_size(state.world, &place->world_size);
    state.world_session = session;
    state.has_world_session = 1;
    comm_set_world(state.world);
    return 1;
}

static void start_without_world(const struct start *start, const struct recorder_place *place)
{
    recorder_start(start->pair, start->unix_ns, place);
    if (recorder_state != RECORDER_OFF)
        inject_cannot(current_thread, "the program starts MPI by sessions, and has no MPI_COMM_SELF");
}

static void session_begun(const struct start *start, MPI_Session session, struct caller caller)
{
    struct recorder_place place;
    pthread_mutex_lock(&state.lock);
    state.open_sessions++;
    int found = find_world_of(session, &place);
    if (start && found)
        start_without_world(start, &place);
    if (recorder_state != RECORDER_OFF)
        recorder_multiple = 1;
    recorder_go_on();
    if (current_thread)
        facts_take_use_back(current_thread);
    pthread_mutex_unlock(&state.lock);
    if (start)
        record_first_call(start, CALL_MPI_Session_init, caller);
}

int wrap_C_MPI_Session_init(MPI_Info info, MPI_Errhandler errhandler, MPI_Session *session)
{
    struct start start;
    struct span span;
    int first = begins(&start);
    struct thread *t = first ? NULL : enter();
    if (t)
        span_begin(&span, t, CALL_MPI_Session_init, CALLER(), NULL);
    int error = REAL(C_MPI_Session_init)(info, errhandler, session);
    if (t) {
        span_stamp(&span);
        record_call(&span, NULL, NULL);
    }
    if (error == MPI_SUCCESS && (first || t))
        session_begun(first ? &start : NULL, *session, CALLER());
    if (t)
        leave(t);
    return error;
}

static inline ALWAYS_INLINE void fortran_session_init(F_MPI_Session_init_fn *real, const MPI_Fint *info,
                                                      const MPI_Fint *errhandler, MPI_Fint *session, MPI_Fint *ierror)
{
    MPI_Fint own_error = MPI_SUCCESS;
    struct start start;
    struct span span;
    int first = begins(&start);
    struct thread *t = first ? NULL : enter();
    ierror = ierror ? ierror : &own_error;
    if (t)
        span_begin(&span, t, CALL_MPI_Session_init, CALLER(), NULL);
    real(info, errhandler, session, ierror);
    if (t) {
        span_stamp(&span);
        record_call(&span, NULL, NULL);
    }
    if (*ierror == MPI_SUCCESS && (first || t))
        session_begun(first ? &start : NULL, session_f2c(*session), CALLER());
    if (t)
        leave(t);
}

void wrap_F_MPI_Session_init(const MPI_Fint *info, const MPI_Fint *errhandler, MPI_Fint *session, MPI_Fint *ierror)
{
    fortran_session_init(REAL(F_MPI_Session_init), info, errhandler, session, ierror);
}

void wrap_F08_MPI_Session_init(const MPI_Fint *info, const MPI_Fint *errhandler, MPI_Fint *session, MPI_Fint *ierror)
{
    fortran_session_init(REAL(F08_MPI_Session_init), info, errhandler, session, ierror);
}

/* Before a session ends: what we hold of it is let go. */
static void session_ends(MPI_Session session)
{
    pthread_mutex_lock(&state.lock);
    if (state.has_world_session && !memcmp(&session, &state.world_session, sizeof session)) {
        state.has_world_session = 0;
        if (!state.initialized)
            comm_set_world(mpi.group_null);
        mpi.Group_free(&state.world);
    }
    pthread_mutex_unlock(&state.lock);
}

/* Behind the last one MPI may be started again, so recording ends when the process does. */
static void session_ended(struct thread *t, uint64_t began)
{
    int is_used = facts_look_for_use(t); /* asks the driver and the loader, who have locks of their own */
    pthread_mutex_lock(&state.lock);
    int last = --state.open_sessions == 0 && (!state.initialized || state.finalized);
    if (last) {
        recorder_all_ended(began);
        facts_write_use(t, is_used);
    }
    pthread_mutex_unlock(&state.lock);
    if (last)
        device_flush();
}

int wrap_C_MPI_Session_finalize(MPI_Session *session)
{
    struct thread *t = session ? enter() : NULL;
    if (!t)
        return REAL(C_MPI_Session_finalize)(session);
    struct span span;
    session_ends(*session);
    span_begin(&span, t, CALL_MPI_Session_finalize, CALLER(), NULL);
    int error = REAL(C_MPI_Session_finalize)(session);
    span_stamp(&span);
    record_call(&span, NULL, NULL);
    if (error == MPI_SUCCESS)
        session_ended(t, span.begin);
    leave(t);
    return error;
}

static inline ALWAYS_INLINE void fortran_session_finalize(F_MPI_Session_finalize_fn *real, MPI_Fint *session, MPI_Fint *ierror)
{
    struct thread *t = enter();
    if (!t) {
        real(session, ierror);
        return;
    }
    MPI_Fint own_error = MPI_SUCCESS;
    struct span span;
    ierror = ierror ? ierror : &own_error;
    session_ends(session_f2c(*session));
    span_begin(&span, t, CALL_MPI_Session_finalize, CALLER(), NULL);
    real(session, ierror);
    span_stamp(&span);
    record_call(&span, NULL, NULL);
    if (*ierror == MPI_SUCCESS)
        session_ended(t, span.begin);
    leave(t);
}

void wrap_F_MPI_Session_finalize(MPI_Fint *session, MPI_Fint *ierror)
{
    fortran_session_finalize(REAL(F_MPI_Session_finalize), session, ierror);
}

void wrap_F08_MPI_Session_finalize(MPI_Fint *session, MPI_Fint *ierror)
{
    fortran_session_finalize(REAL(F08_MPI_Session_finalize), session, ierror);
}

/* --- the end ------------------------------------------------------------------------------------------------------ */

static void begin_finalize(struct span *span, struct thread *t, struct caller caller)
{
    inject_stop(t);
    reach_stop(t);
    profile_stop(t);
    processor_define(t);
    sample_end(t);
    span_begin(span, t, CALL_MPI_Finalize, caller, NULL);
    if (!state.open_sessions)
        spool_header()->finalize_begin = span->begin;
}

static void end_finalize(struct span *span, struct thread *t)
{
    span_stamp(span);
    record_call(span, NULL, NULL);
    sends_record(t);
    device_flush();
    facts_write_counted(t);
    int is_used = facts_look_for_use(t);
    pthread_mutex_lock(&state.lock);
    int is_last = !state.open_sessions;
    if (is_last)
        facts_write_use(t, is_used);
    state.finalized = 1;
    pthread_mutex_unlock(&state.lock);
    leave(t);
    if (is_last)
        recorder_stop(SPOOL_FINALIZED);
}

int wrap_C_MPI_Finalize(void)
{
    struct thread *t = enter();
    if (!t)
        return REAL(C_MPI_Finalize)();
    struct span span;
    begin_finalize(&span, t, CALLER());
    int error = REAL(C_MPI_Finalize)();
    end_finalize(&span, t);
    return error;
}

static inline ALWAYS_INLINE void fortran_finalize(F_MPI_Finalize_fn *real, MPI_Fint *ierror)
{
    struct thread *t = enter();
    if (!t) {
        real(ierror);
        return;
    }
    struct span span;
    begin_finalize(&span, t, CALLER());
    real(ierror);
    end_finalize(&span, t);
}

void wrap_F_MPI_Finalize(MPI_Fint *ierror)
{
    fortran_finalize(REAL(F_MPI_Finalize), ierror);
}

void wrap_F08_MPI_Finalize(MPI_Fint *ierror)
{
    fortran_finalize(REAL(F08_MPI_Finalize), ierror);
}

struct abort_call {
    struct thread *thread;
    struct caller caller;
};

static void begin_abort(void *argument)
{
    const struct abort_call *call = argument;
    struct span span;
    span_begin(&span, call->thread, CALL_MPI_Abort, call->caller, NULL);
}

/* The real call does not come back; this may be from within an error handler, or on the stack of a signal handler. */
static void aborts(struct caller caller)
{
    struct abort_call call = {enter(), caller};
    if (call.thread)
        own_stack_call(begin_abort, &call);
    recorder_stop(SPOOL_ABORTED);
}

int wrap_C_MPI_Abort(MPI_Comm comm, int code)
{
    aborts(CALLER());
    return REAL(C_MPI_Abort)(comm, code);
}

void wrap_F_MPI_Abort(const MPI_Fint *comm, const MPI_Fint *code, MPI_Fint *ierror)
{
    aborts(CALLER());
    REAL(F_MPI_Abort)(comm, code, ierror);
}

void wrap_F08_MPI_Abort(const MPI_Fint *comm, const MPI_Fint *code, MPI_Fint *ierror)
{
    aborts(CALLER());
    REAL(F08_MPI_Abort)(comm, code, ierror);
}
