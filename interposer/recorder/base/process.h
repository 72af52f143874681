/* Which process is which: what tells one from another that was given the same pid, here or on another node. */
#ifndef LAPSCOPE_PROCESS_H
#define LAPSCOPE_PROCESS_H

#include <stddef.h>
#include <stdint.h>

/* When a process began, in ticks since the boot; 0 when there is none, or it is dead and only its parent does not know.
 * `pid` is a number, or "self". */
uint64_t process_start(const char *pid);

/* Whether the process of that pid and start is no more, or dead and only its parent does not know; 0 where that is not known. A start of 0:
 * nor is when it began. */
int process_has_gone(long pid, uint64_t start);

/* Whether the main thread has ended by pthread_exit(), and all others but so many as well. */
int process_has_only_helpers(int helpers);

/* Pids of another name space mean nothing. 0: not known. */
uint64_t process_namespace(void);

/* Where the process was when it began: relative names are meant from there, wherever it is now. Set once, by whoever was
 * there; until then it is where the process is now. Returns 0 where that cannot be named (errno). */
void process_began_in(const char *directory);
int process_directory(char *path, size_t bytes);

/* What everybody in the process is bound to under that name; NULL: nothing. RTLD_DEFAULT asks the C library first, to which
 * we are bound, where the executable may have a function, or a copy of a variable, that goes before it. */
void *process_symbol(const char *name);

/* Identity of this boot of this node; empty: not known. */
void process_boot(char *boot_id, size_t bytes);

#endif
