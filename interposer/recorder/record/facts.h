/* What is recorded once of a run: the program, its MPI, the options and the environment. */
#ifndef LAPSCOPE_FACTS_H
#define LAPSCOPE_FACTS_H

#include "../base/job.h"
#include "thread.h"

/* Also says what is strange in the job. */
void facts_write(struct thread *t, const struct job *job);

/* Now and then: the driver of an accelerator, once it is there, and whether MPI takes buffers in its memory. */
void facts_look(struct thread *t);

/* At the end: what was counted outside of MPI, on all threads together. */
void facts_write_counted(struct thread *t);

/* Looks once more, and whether a driver that is there may be used. */
int facts_look_for_use(struct thread *t);

/* Where MPI has ended. A session may start it again, and then that is not known. */
void facts_write_use(struct thread *t, int is_used);
void facts_take_use_back(struct thread *t);

/* The program's command line, as it may be written down. */
void facts_command(char *text, size_t bytes);

#endif
