/* The recorder's life: from the return of the first MPI_Init or MPI_Session_init to the end of the process. */
#ifndef LAPSCOPE_RECORDER_H
#define LAPSCOPE_RECORDER_H

#include "../../../schema/spool.h"

#include <stdint.h>

/* This process among those that started with it. */
struct recorder_place {
    int rank, world_size;
    int thread_level;        /* 0 single .. 3 multiple */
};

/* MPI is up: starts recording. On any trouble says so once, and the application goes on alone. */
void recorder_start(struct spool_clock_pair began, int64_t began_unix_ns, const struct recorder_place *place);

/* MPI_COMM_WORLD and MPI_COMM_SELF can be used. */
void recorder_know_world(void);

/* MPI has ended for now, at that moment (ticks); a further session may start it again, and then recording goes on. */
void recorder_all_ended(uint64_t began);
void recorder_go_on(void);

/* Ends recording and turns the spool into SQLite, if this process still records. */
void recorder_stop(enum spool_end end);

/* The process leaves by _exit(), perhaps in a signal handler: that is noted, and the spool stays. */
void recorder_left(void);

#endif
