/*
 * What the preload library and a recorder know of each other.
 *
 * The preload library owns a slot for each call of calls.def; the trampolines jump through them. At the first MPI call it
 * finds the MPI in the process, fills `real`, loads the recorder for that MPI's ABI and lets it put its wrappers into
 * `slots`. The recorder reaches MPI only through `real` and `lookup`: it has no undefined MPI symbols of its own, which
 * would bind to nothing when the MPI is loaded with local scope.
 */
#ifndef LAPSCOPE_HOST_H
#define LAPSCOPE_HOST_H

#define LAPSCOPE_HOST_VERSION 1u

struct lapscope_host {
    unsigned version;           /* LAPSCOPE_HOST_VERSION */
    unsigned calls;             /* entries in slots and real */
    void **slots;               /* where the trampolines jump; the recorder overwrites those that it wraps and that have a real */
    void *const *real;          /* the next MPI_X in line: MPI's own, or another tool's; NULL where this MPI has none */
    void *(*lookup)(const char *symbol); /* a symbol of the MPI itself (PMPI_X, predefined objects); NULL if it has none */
    const char *mpi_path;       /* the MPI's shared object */
};

/* Exported by each recorder. Returns 0 after filling the slots; else leaves them as they were. */
typedef int lapscope_attach_fn(const struct lapscope_host *host);
#define LAPSCOPE_ATTACH_SYMBOL "lapscope_attach"

#endif
