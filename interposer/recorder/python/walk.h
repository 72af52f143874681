/* The frames of a thread of an interpreter, innermost first. */
#ifndef LAPSCOPE_PYTHON_WALK_H
#define LAPSCOPE_PYTHON_WALK_H

#include "layout.h"

struct python_walk {
    uintptr_t frame;          /* 0: there are no more */
    uintptr_t cframe;
};

struct python_walk python_walk_begin(uintptr_t thread);

/* The next frame that has code; 0: there is none. */
uintptr_t python_walk_next(struct python_walk *walk);

/* Whether the frame, which python_walk_next has just returned, is the outermost of those that one activation of the interpreter
 * runs, and something of that activation on the machine's stack; 0: not known. To be asked once of each frame. */
int python_walk_ends_activation(struct python_walk *walk, uintptr_t frame, uintptr_t *stands_at);

#endif
