/*
 * A stack of our own, for what takes more of one than its caller may have: ranks end wherever they like, in a signal handler on an
 * alternate stack of 8 KiB, in a thread of 32 KiB, in a coroutine.
 */
#ifndef LAPSCOPE_OWN_STACK_H
#define LAPSCOPE_OWN_STACK_H

/* Reserves it: address space, of which nothing is used until then. */
void own_stack_reserve(void);

/* Calls a function there; on the caller's stack where there is none, or somebody is on it. */
void own_stack_call(void (*function)(void *), void *argument);

#endif
