/* Every symbol that we export, by number (generated from calls.def). */
#ifndef LAPSCOPE_SYMBOLS_H
#define LAPSCOPE_SYMBOLS_H

#include <signal.h>

enum symbol {
#define FUNCTION(function)
#define SYMBOL(name, function) SYMBOL_##name,
#include "functions.inc"
#undef FUNCTION
#undef SYMBOL
    SYMBOL_COUNT
};

/* Their names, each ended by a zero. One text instead of pointers: those would have to be relocated in every process
 * that inherits LD_PRELOAD. */
extern const char lapscope_symbols[] __attribute__((visibility("hidden")));

/* Code that the loader calls when it binds a symbol: lapscope_probe with the symbol's number (trampoline.S). */
enum { LAPSCOPE_PROBE_BYTES = 16 };
extern char lapscope_probes[] __attribute__((visibility("hidden")));
void *lapscope_probe(unsigned symbol) __attribute__((visibility("hidden")));

/* The trampolines themselves, by number. */
enum { LAPSCOPE_ENTRY_BYTES = 32 };
extern char lapscope_entries[] __attribute__((visibility("hidden")));

/* Where the trampoline of a C function is; NULL for Fortran's. */
void *lapscope_entry(unsigned symbol, const char *name) __attribute__((visibility("hidden")));

/* From here on, who asks whether this MPI has a C function is told the truth (probe.c). */
void lapscope_make_indirect(void) __attribute__((visibility("hidden")));

/* What _exit() calls before it leaves (exit.c). */
extern void (*lapscope_exit_hook)(void) __attribute__((visibility("hidden")));

/* What a change of the thread's signal mask calls before it is made (mask.c). */
extern void (*lapscope_mask_hook)(int how, const sigset_t *set) __attribute__((visibility("hidden")));

#endif
