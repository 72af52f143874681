/* What is recorded once of a run: the program, its MPI, the options and the environment. */
#ifndef LAPSCOPE_FACTS_H
#define LAPSCOPE_FACTS_H

#include "thread.h"

void facts_write(struct thread *t, const char *job);

#endif
