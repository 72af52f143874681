/*
 * Call paths of LAPSCOPE_RECORD=job, in a table of fixed size (schema/spool.h, FRAMES): those of the cells stay, and the others go when
 * there is no room for a new one. So the sites that are kept are kept with their places, whichever came first.
 */
#ifndef LAPSCOPE_FRAME_TREE_H
#define LAPSCOPE_FRAME_TREE_H

#include <stdint.h>

/* Makes the table. Returns 0 when there is no room. */
int frame_tree_open(void);

int frame_tree_is_open(void);

/* The identity of a path, innermost frame first; 0: there is no room. `is_new`: some of its frames were not there. */
uint32_t frame_tree_intern(const uintptr_t *frames, unsigned count, int *is_new);

int frame_tree_has(uint32_t path);

/* The return addresses of a path, innermost first, at most SPOOL_FRAMES_DEPTH; returns how many. */
unsigned frame_tree_frames(uint32_t path, uintptr_t *frames);

/* Takes out what no cell of any thread has. Returns how many entries are free then. */
unsigned frame_tree_sweep(void);

/* How often paths may have gone. */
unsigned frame_tree_sweeps(void);

#endif
