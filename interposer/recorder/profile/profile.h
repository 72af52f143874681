/*
 * Which instructions compute, and while which messages are under way (LAPSCOPE_SAMPLE). What wrappers have to do with it; the
 * rest hears of calls by hooks (record/thread.h).
 */
#ifndef LAPSCOPE_PROFILE_H
#define LAPSCOPE_PROFILE_H

#include "../record/thread.h"

/* MPI is about to start: threads that come until profile_start() are its own. */
void profile_before_start(void);
/* MPI is up, and this thread is the first of the recorder's. */
void profile_start(struct thread *t);
/* MPI is about to end: no more samples are taken. */
void profile_stop(struct thread *t);
/* The process ends, in whatever state it is. */
void profile_abandon(void);

#endif
