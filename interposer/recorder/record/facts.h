/* What is recorded once of a run: the program, its MPI, the options and the environment. */
#ifndef LAPSCOPE_FACTS_H
#define LAPSCOPE_FACTS_H

#include "../base/job.h"
#include "thread.h"

/* Also says what is strange in the job. */
void facts_write(struct thread *t, const struct job *job);

/* Now and then: the driver of an accelerator, once it is there, and whether MPI takes buffers in its memory. */
void facts_look(struct thread *t);

/* At the end: what was counted outside of MPI, on all threads together; looks once more. `goes_on`: a session is open. */
void facts_write_end(struct thread *t, int goes_on);

/* The program's command line, as it may be written down. */
void facts_command(char *text, size_t bytes);

#endif
