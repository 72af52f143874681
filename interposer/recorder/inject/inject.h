/*
 * Tests that lapscope makes itself (LAPSCOPE_INJECT), so that transfers go on while the application computes. What the
 * rest of the recorder has to do with it; injector.h has what the ways of injecting share.
 *
 * Nothing of the application's is touched by a test (progress.h). Tests are made only while a request of a size that is
 * worth it is pending: a window, which opens when such a request is posted; or while copies of sends are under way.
 */
#ifndef LAPSCOPE_INJECT_H
#define LAPSCOPE_INJECT_H

#include "../record/operation.h"

#include <signal.h>

/* --- the start and the end --- */

/* Around MPI's start. `level`: of threads, as the application asks for it; returns what to ask MPI for. For MPI_Init,
 * which has no such argument, the environment is changed meanwhile. */
int inject_before_start(int level);
void inject_before_plain_start(void);
void inject_behind_start(void);
/* What the application is told of a level that MPI has granted. */
int inject_tells(int level);

/* The run directory; NULL: there is none. `is_needed`: more than a word that nothing was done is to be written there. */
typedef const char *inject_run_directory(int is_needed);

/* MPI is up, and this thread is the first of the recorder's. `job`: the same on all ranks, and only there; it stays. */
void inject_start(struct thread *t, const char *job, inject_run_directory *run);
/* Nothing can be injected here, for that reason (a constant). */
void inject_cannot(struct thread *t, const char *why);
/* MPI is about to end: makes no more tests, and waits for those under way. */
void inject_stop(struct thread *t);
/* The process ends, in whatever state it is: makes no more tests. */
void inject_abandon(void);

/* The program is about to change its thread's signal mask, as by pthread_sigmask. For signal handlers too. */
void inject_mask_changes(int how, const sigset_t *set);

/* --- in each thread; `injector` is NULL where nothing is injected --- */

/* The reduction that follows does so with this operation. */
void inject_reduces(struct injector *injector, MPI_Op operation);

static inline void inject_reduces_with(struct thread *t, MPI_Op operation)
{
    if (UNLIKELY(t->injector != NULL))
        inject_reduces(t->injector, operation);
}

#endif
