/* Lines of Python, for call paths: see README.md beside this file. */
#ifndef LAPSCOPE_PYTHON_H
#define LAPSCOPE_PYTHON_H

#include <stdint.h>

#pragma GCC visibility push(hidden)
extern int python_is_on;      /* an interpreter was found, and what is known of it proved */
#pragma GCC visibility pop

enum { PYTHON_MOST_FRAMES = 128 };

/* Reads LAPSCOPE_CALLPATH and LAPSCOPE_CALLPATH_PYTHON. */
void python_configure(void);

/* Looks for an interpreter where objects were loaded since it looked last. Callers are about to take a call path. */
void python_look(void);

/* What the calling thread's frames are, and its innermost alone: equal where they are equal, 0 where there are none. */
struct python_identity {
    uint64_t all, innermost;
};
struct python_identity python_identity(void);

/* The calling thread's lines of Python, innermost first. */
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
void python_read_lines(struct python_lines *lines, unsigned most);

/* A native frame: the return address into its function, and the lowest address of its part of the stack. */
struct python_native {
    uintptr_t address, stack;
};

/* Puts the lines in place of the interpreter's own frames: `to` has room for `most`. Returns how many there are. */
unsigned python_mix(const struct python_lines *lines, const struct python_native *native, unsigned count, uintptr_t *to,
                    unsigned most);

/* Whether an address is one of a line. */
static inline int python_is_line(uintptr_t address)
{
    return (address >> 63) != 0;
}

/* A Python function, as an object file has it. */
struct python_function {
    uintptr_t begin;          /* of its addresses */
    uint64_t size;
    const char *file;
    const char *build_id;     /* "python:NAME" */
    int is_defined;           /* for modules.c */
};

/* The function that a line is of. */
struct python_function *python_function_of(uintptr_t address);

#endif
