/*
 * Call paths by id: each is once in the process, and once in its spool. They take no more memory than LAPSCOPE_CALLPATH_MB says. Those
 * of LAPSCOPE_RECORD=job stand in frame_tree.h.
 */
#ifndef LAPSCOPE_PATH_H
#define LAPSCOPE_PATH_H

#include "thread.h"

enum { PATH_MOST_FRAMES = 128 };

/* A path as it was found. */
struct path_found {
    unsigned frame_count;
    int truncated;   /* there are further callers */
    unsigned own;    /* how many innermost frames stay where there are too many paths; 0 is 1 */
    int is_cut;      /* by path_intern: there were too many paths, and this is its innermost frame alone, or nothing */
    uintptr_t frames[PATH_MOST_FRAMES]; /* return addresses, innermost first */
};

/* Reads LAPSCOPE_CALLPATH_MB. */
void path_configure(void);

/* The id in the spool; 0: no room. Of what is cut `found` becomes what it was cut to. */
uint32_t path_intern(struct thread *t, struct path_found *found);

/* The id of a path of a few addresses that were found otherwise than by unwinding; 0: no room. */
uint32_t path_define(struct thread *t, const uintptr_t *frames, unsigned count);

/* The return addresses of a path, innermost first; returns how many, 0 where they are not known. */
unsigned path_frames(uint32_t path, uintptr_t frames[PATH_MOST_FRAMES]);

/* Whether a path that was interned is still there. `paths_gone` counts how often some may have gone. */
int path_is_there(uint32_t path);
unsigned paths_gone(void);

#endif
