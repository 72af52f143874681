/* The executables and shared objects that call paths run through, written to the spool as they are met. */
#ifndef LAPSCOPE_MODULES_H
#define LAPSCOPE_MODULES_H

#include "thread.h"

/* Writes a definition of every module that holds one of the addresses and has none yet. Callers hold a lock. */
void modules_define(struct thread *t, const uintptr_t *addresses, unsigned count);

#endif
