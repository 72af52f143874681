#include "walk.h"

struct python_walk python_walk_begin(uintptr_t thread)
{
    const struct python_layout *l = &python_layout;
    return (struct python_walk){python_innermost(thread), l->outer_cframe >= 0 ? python_word(thread, l->frame_of_thread) : 0};
}

uintptr_t python_walk_next(struct python_walk *walk)
{
    while (walk->frame && python_is_shim(walk->frame))
        walk->frame = python_word(walk->frame, python_layout.outer);
    uintptr_t frame = walk->frame;
    walk->frame = frame ? python_word(frame, python_layout.outer) : 0;
    return frame;
}

/* Of 3.11 an activation stands where its cframe does, of later ones where the shim behind the frame does. */
int python_walk_ends_activation(struct python_walk *walk, uintptr_t frame, uintptr_t *stands_at)
{
    const struct python_layout *l = &python_layout;
    uintptr_t outer = walk->frame;
    *stands_at = 0;
    if (l->is_entry >= 0) {
        if (!*(const uint8_t *)python_memory_at(frame + (uintptr_t)l->is_entry, 1))
            return 0;
        *stands_at = walk->cframe;
        walk->cframe = walk->cframe ? python_word(walk->cframe, l->outer_cframe) : 0;
        return 1;
    }
    if (l->owner < 0) /* 3.8 to 3.10: an activation a frame */
        return 1;
    if (outer && !python_is_shim(outer))
        return 0;
    *stands_at = outer;
    return 1;
}
