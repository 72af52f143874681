/*
 * Where in a process MPI may be entered from a signal handler: only where the interrupted code is in no object that MPI
 * may itself come to, because such code may hold a lock that MPI would wait for, or be half way through a change of
 * what MPI reads.
 *
 * MPI may come to the MPI library and what it needs; what was loaded while MPI started; what is loaded later and needs
 * something that only MPI does; libc and what it opens; whoever provides malloc; everything preloaded; the driver of a GPU. Not to libm,
 * which has no state. A program's own libraries are safe although they may hold locks: MPI does not call them. In the
 * handler it is a binary search.
 */
#ifndef LAPSCOPE_SAFE_POINT_H
#define LAPSCOPE_SAFE_POINT_H

#include <stdint.h>

/* Before MPI starts: what is loaded now is the program's. */
void safe_point_before_mpi(void);

/* Finds out anew which objects are safe, if any have been loaded or unloaded since. `mpi`: an address in the code of
 * the MPI library. Not for signal handlers. Returns 0 when there is no memory. */
int safe_point_update(uintptr_t mpi);

/* Whether code at that address may be interrupted for MPI. For signal handlers. */
int safe_point_holds(uintptr_t address);

/* Why there is no safe point in this program; NULL: there are some. After safe_point_update(). */
const char *safe_point_problem(void);

#endif
