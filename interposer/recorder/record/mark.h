/*
 * What the program marks by MPI_Pcontrol, as IPM has it: 1 and a name begin a region, -1 and the name end it. 2 begins a step. 0
 * pauses recording, which is marked once: whoever counts messages has to know that some may be missing.
 * Marks are recorded whatever else is left out of a long run; they have bounds of their own.
 *
 * What comes as the second argument is an address for the kernel, which may be anything (name.h): nothing says whether
 * one was given, and IPM, which believes it, crashes where the register holds something else. What was left in the
 * register may be the address of a text all the same: such a begin has no end, and analyses count pairs alone. Steps
 * have a level without a name, as Fortran's modules have no second argument. A mark costs 2 to 3 us with a name, 30 ns
 * as a step, and nothing to other calls.
 */
#ifndef LAPSCOPE_MARK_H
#define LAPSCOPE_MARK_H

#include "thread.h"

/* MPI_Pcontrol was called with `level`; `argument` came, or was left, where a second argument comes. */
void mark(struct thread *t, int level, uintptr_t argument);

enum { MARK_REGION_BEGIN = 1, MARK_REGION_END = -1, MARK_STEP = 2, MARK_PAUSE = 0 };
enum { MARK_NAMES = 1000, MARKS_A_MB = 10000, MARKS = 1000000 };

#endif
