#include "function.h"
#include "interpreter.h"
#include "python.h"

#include "../base/config.h"

#include <stddef.h>

static inline uint64_t add_to(uint64_t hash, uintptr_t code, uint64_t instruction)
{
    hash = (hash ^ code ^ instruction << 24 ^ instruction >> 40) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 29;
}

/* Only frames that a path can have: a path is what it is whatever is called from further out. */
struct python_identity python_identity(void)
{
    struct python_identity identity = {0, 0};
    uintptr_t thread = python_interpreter_thread();
    if (!thread)
        return identity;
    uintptr_t frame = python_innermost(thread);
    uint64_t hash = __atomic_load_n(&python_interpreter.generation, __ATOMIC_ACQUIRE);
    for (int64_t left = config.callpath_depth; frame && left > 0; frame = python_word(frame, python_layout.outer)) {
        if (python_is_shim(frame))
            continue;
        hash = add_to(hash, python_code(frame), python_instruction(frame));
        identity.innermost = identity.innermost ? identity.innermost : hash;
        left--;
    }
    identity.all = identity.innermost ? hash | 1 : 0;
    return identity;
}

/* The activation that the frame begins: of 3.11 the place of its cframe, of later ones that of the shim behind the frame. */
static int ends_activation(uintptr_t frame, uintptr_t *cframe, uintptr_t *stands_at)
{
    const struct python_layout *l = &python_layout;
    uintptr_t outer = python_word(frame, l->outer);
    *stands_at = 0;
    if (l->is_entry >= 0) {
        if (!*(const uint8_t *)(frame + (uintptr_t)l->is_entry))
            return 0;
        *stands_at = *cframe;
        *cframe = *cframe ? python_word(*cframe, l->outer_cframe) : 0;
        return 1;
    }
    if (l->owner < 0) /* 3.8 to 3.10: an activation a frame */
        return 1;
    if (outer && !python_is_shim(outer))
        return 0;
    *stands_at = outer;
    return 1;
}

void python_read_lines(struct python_lines *lines, unsigned most)
{
    const struct python_layout *l = &python_layout;
    uintptr_t thread = python_interpreter_thread();
    lines->count = 0;
    lines->truncated = 0;
    if (!thread)
        return;
    uintptr_t cframe = l->outer_cframe >= 0 ? python_word(thread, l->frame_of_thread) : 0;
    for (uintptr_t frame = python_innermost(thread); frame; frame = python_word(frame, l->outer)) {
        if (python_is_shim(frame))
            continue;
        if (lines->count == most || lines->count == PYTHON_MOST_FRAMES) {
            lines->truncated = 1;
            return;
        }
        uintptr_t code = python_code(frame);
        struct python_line *line = &lines->line[lines->count++];
        python_interpreter_knows(code);
        line->address = python_address_of(code, python_place_of(code, python_instruction(frame)));
        line->is_outermost = ends_activation(frame, &cframe, &line->stands_at);
    }
}
