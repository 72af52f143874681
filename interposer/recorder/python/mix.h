/* Lines of Python in place of the interpreter's own frames. */
#ifndef LAPSCOPE_PYTHON_MIX_H
#define LAPSCOPE_PYTHON_MIX_H

#include <stdint.h>

enum { PYTHON_MOST_FRAMES = 128 };

/* Lines of a thread, innermost first. */
struct python_line {
    uintptr_t address;        /* in the address space of its function */
    int is_outermost;         /* of those that one activation of the interpreter runs */
    uintptr_t stands_at;      /* of an outermost one, something of that activation on the machine's stack; 0: not known */
};
struct python_lines {
    struct python_line line[PYTHON_MOST_FRAMES];
    unsigned count;
    int truncated;            /* there are further callers */
};
/* A native frame: the return address into its function, and the lowest address of its part of the stack. */
struct python_native {
    uintptr_t address, stack;
};

/* The interpreter's machine code: of the executable or library that it is, and of _PyEval_EvalFrameDefault. */
struct python_machine_code {
    uintptr_t begin, end, eval_begin, eval_end;
};

/* Puts the lines in place of the interpreter's own frames: `to` has room for `most`. Returns how many there are. `drop_start` is
 * given the frames so far and how many end with the last line, and returns how many are to stay; NULL: all. */
unsigned python_mix_frames(const struct python_machine_code *code, const struct python_lines *lines, const struct python_native *native,
                           unsigned count, unsigned (*drop_start)(const uintptr_t *to, unsigned count, unsigned last_line),
                           uintptr_t *to, unsigned most);

#endif
