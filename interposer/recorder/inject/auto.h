/*
 * LAPSCOPE_INJECT=auto: what is injected is switched while the program runs. pilot.h decides; here is what it is told, and
 * what follows from what it says.
 *
 * Until a large request is posted, nothing is done at all, and calls cost what they cost without injection
 * (stamps_are_plain). All of it is done when large requests are posted, in the thread that posts, under a lock that
 * nobody waits for.
 */
#ifndef LAPSCOPE_AUTO_H
#define LAPSCOPE_AUTO_H

#include "injector.h"

/* The level of threads that the application asked for. */
void auto_asked_for(int level);

/* `job` is the same on all ranks. */
void auto_start(const char *job, inject_run_directory *run);

/* A large request was posted; returns whether windows are kept of it. */
int auto_posted(struct injector *injector, struct inject_site *site, const struct operation *operation);

/* The thread enters and leaves MPI; not while it sleeps. */
void auto_entered(struct injector *injector);
void auto_left(struct injector *injector);

/* Calls have to be known of from now on: there are reductions with operations of the application's. */
void auto_stays_awake(void);

/* Says and writes down what was done, once. `t`: the calling thread; NULL where the database is not to be written to any more. */
void auto_end(struct thread *t);

#endif
