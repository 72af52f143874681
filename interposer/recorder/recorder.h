/* The recorder's life: from the return of MPI_Init to the end of the process. */
#ifndef LAPSCOPE_RECORDER_H
#define LAPSCOPE_RECORDER_H

#include "../../schema/spool.h"

#include <stdint.h>

/* MPI is up: starts recording. On any trouble says so once, and the application goes on alone. */
void recorder_start(struct spool_clock_pair began, int64_t began_unix_ns);

/* Ends recording and turns the spool into SQLite, if this process still records. */
void recorder_stop(enum spool_end end);

#endif
