/* The interpreter of this process. */
#ifndef LAPSCOPE_PYTHON_INTERPRETER_H
#define LAPSCOPE_PYTHON_INTERPRETER_H

#include "mix.h"
#include "proof.h"

struct python_interpreter {
    struct python_api api;
    struct python_machine_code code;
    uint64_t generation;                   /* higher whenever a known code object died */
};
extern struct python_interpreter python_interpreter;

/* The calling thread's state; 0: none, or it may be gone, as those of all other threads are while an interpreter ends. */
static inline uintptr_t python_interpreter_thread(void)
{
    const struct python_api *api = &python_interpreter.api;
    return api->is_ending() ? 0 : (uintptr_t)api->this_thread();
}

/* A path runs through the code object: its death changes the generation. Callers have read the generation before. */
void python_interpreter_knows(uintptr_t code);

#endif
