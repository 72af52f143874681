/* Lines of Python, for call paths: see README.md beside this file. */
#ifndef LAPSCOPE_PYTHON_H
#define LAPSCOPE_PYTHON_H

#include "mix.h"

#pragma GCC visibility push(hidden)
extern int python_is_on;      /* an interpreter was found, and what is known of it proved */
#pragma GCC visibility pop

/* Reads LAPSCOPE_CALLPATH and LAPSCOPE_CALLPATH_PYTHON. */
void python_configure(void);

/* Looks for an interpreter where objects were loaded since it looked last. Callers are about to take a call path. */
void python_look(void);

/* What the calling thread's frames are, and its innermost alone: equal where they are equal, 0 where there are none. */
struct python_identity {
    uint64_t all, innermost;
};
struct python_identity python_identity(void);

/* The calling thread's lines of Python. */
void python_read_lines(struct python_lines *lines, unsigned most);

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
