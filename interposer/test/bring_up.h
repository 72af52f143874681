/* The recorder's MPI-free parts brought up as MPI_Init would: a spool in a directory of the test's own, and this
 * thread. */
#ifndef LAPSCOPE_TEST_BRING_UP_H
#define LAPSCOPE_TEST_BRING_UP_H

#include "../recorder/record/entry.h"

/* The calling thread's record; a message and exit(2) when it cannot be had. */
struct thread *bring_up(void);
/* The spool. */
const char *bring_up_path(void);
/* Removes the files. */
void tear_down(void);

#endif
