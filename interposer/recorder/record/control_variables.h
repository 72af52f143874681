/* What the MPI of this process declares about its protocols: the limits and transports that sends depend on. */
#ifndef LAPSCOPE_CONTROL_VARIABLES_H
#define LAPSCOPE_CONTROL_VARIABLES_H

#include "thread.h"

/*
 * Defines "cvar.NAME" for each control variable about protocols that this Open MPI has, as it is in force in this
 * process: 0.1 ms once, nothing is opened or sent. Of other MPIs the environment tells what was set.
 *
 * They are read here because nobody may ask later: whoever reads a run must not load a library that the run names. Nor
 * does it matter whose files they are: what is unpacked from an archive belongs to whoever unpacks it.
 */
void control_variables_define(struct thread *t);

#endif
