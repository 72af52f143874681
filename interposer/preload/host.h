/*
 * What the preload library and a recorder know of each other.
 *
 * A function is a call in one binding: C, Fortran's mpif.h, or mpi_f08 with or without descriptors; it may have several
 * symbols, which are the manglings of Fortran compilers (functions.inc, made from calls.def). The preload library owns
 * a slot for each symbol; the trampolines jump through them. The first call through any slot finds the MPI in the
 * process and loads the recorder for its ABI; the first call through each slot finds that symbol and puts the
 * recorder's wrapper into the slot. A wrapper's real call may be that of a substitute (recorder/wrap/substitutes.c), which
 * does what LAPSCOPE_BUFFER_SENDS asks for whether or not anything is recorded: so it costs nothing where it is not asked for.
 * The recorder reaches MPI only through `real` and `lookup`: it has no undefined MPI
 * symbols of its own, which would bind to nothing when the MPI is loaded with local scope.
 */
#ifndef LAPSCOPE_HOST_H
#define LAPSCOPE_HOST_H

#include <signal.h>

#define LAPSCOPE_HOST_VERSION 7u

struct lapscope_devices;

struct lapscope_host {
    unsigned version;           /* LAPSCOPE_HOST_VERSION */
    unsigned functions;         /* entries in each table */
    void *const *real;          /* what wrappers call: the substitute, else the next in line; NULL until the function is first called */
    void *const *next;          /* the next in line: MPI's own, or another tool's; likewise */
    void **substitutes;         /* filled in by lapscope_attach: what wrappers are to call instead; NULL: nothing */
    void *(*lookup)(const char *symbol); /* a symbol of the MPI itself (PMPI_X, predefined objects); NULL if it has none */
    const char *mpi_path;       /* the MPI's shared object */
    const char *began_in;       /* where the process was when it began; empty: not known */
    void (**exit_hook)(void);   /* called by _exit() and _Exit() */
    void (**mask_hook)(int how, const sigset_t *set); /* called by pthread_sigmask() and sigprocmask() before they change a mask */
    struct lapscope_devices *devices; /* devices.h */
};

/* Exported by each recorder. Returns a wrapper for each function, or NULL: then nothing is recorded. */
typedef void *const *lapscope_attach_fn(const struct lapscope_host *host);
#define LAPSCOPE_ATTACH_SYMBOL "lapscope_attach"

#endif
