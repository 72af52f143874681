#include "function.h"
#include "interpreter.h"
#include "python.h"
#include "walk.h"

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

void python_read_lines(struct python_lines *lines, unsigned most)
{
    uintptr_t thread = python_interpreter_thread();
    lines->count = 0;
    lines->truncated = 0;
    if (!thread)
        return;
    struct python_walk walk = python_walk_begin(thread);
    for (uintptr_t frame; (frame = python_walk_next(&walk));) {
        if (lines->count == most || lines->count == PYTHON_MOST_FRAMES) {
            lines->truncated = 1;
            return;
        }
        uintptr_t code = python_code(frame);
        struct python_line *line = &lines->line[lines->count++];
        python_interpreter_knows(code);
        line->address = python_address_of(code, python_place_of(code, python_instruction(frame)));
        line->is_outermost = python_walk_ends_activation(&walk, frame, &line->stands_at);
    }
}
