/*
 * Stacks of our own, for what takes more of one than the application's may have: a thread is interrupted, and a rank ends, in a
 * signal handler on an alternate stack of 8 KiB, in a thread of 32 KiB, in a coroutine.
 */
#ifndef LAPSCOPE_OWN_STACK_H
#define LAPSCOPE_OWN_STACK_H

#include <stddef.h>

/* Makes one of so many bytes, those that keep what lies below it included; what is not touched costs nothing. Returns its top, NULL:
 * no memory. */
char *own_stack_make(size_t bytes);

/* Calls a function on it. */
void own_stack_call_at(char *top, void (*function)(void *), void *argument);

/* The process has one for the end of its rank. */
void own_stack_reserve(void);

/* Calls a function there; on the caller's stack where there is none, or somebody is on it. */
void own_stack_call(void (*function)(void *), void *argument);

#endif
