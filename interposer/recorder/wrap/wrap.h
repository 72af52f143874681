/* What all wrappers have in common. */
#ifndef LAPSCOPE_WRAP_H
#define LAPSCOPE_WRAP_H

#include "../inject/inject.h"
#include "../reach/reach.h"
#include "../record/comm.h"
#include "../record/entry.h"
#include "../record/matched.h"
#include "../record/record.h"
#include "../record/record_post.h"

#define REQUESTS(requests) ((struct request_array){requests, FORTRAN})

/* The number at a place of the application's; 0 where it has given none, which MPI returns an error of. */
static inline int given(const int *place)
{
    return LIKELY(place != NULL) ? *place : 0;
}

/* --- communicators, windows and files that a call has made -------------------------------------------------------- */

static inline void made_comm(struct thread *t, MPI_Comm made, enum call call, struct scope parent, uint64_t salt)
{
    comm_define(t, SCOPE(made), call_names[call], parent.kind == SCOPE_NONE ? NULL : comm_of(t, parent), salt);
}

static inline void made_window(struct thread *t, MPI_Win made, enum call call, struct scope parent)
{
    comm_define(t, WINDOW(made), call_names[call], comm_of(t, parent), 0);
}

static inline void made_file(struct thread *t, MPI_File made, enum call call, struct scope parent)
{
    comm_define(t, IN_FILE(made), call_names[call], comm_of(t, parent), 0);
}

/* --- bytes of collectives: what this rank contributes; schema/README.md has the table ----------------------------- */

/* Ranks that data are exchanged with. */
static inline uint64_t other_ranks(struct thread *t, MPI_Comm comm)
{
    return (uint64_t)comm_other_size(comm_of(t, SCOPE(comm)));
}

/* Of the group whose members get the parts of MPI_Reduce_scatter: the local one. */
static inline uint64_t own_ranks(struct thread *t, MPI_Comm comm)
{
    const struct comm *known = comm_of(t, SCOPE(comm));
    return known ? (uint64_t)known->size : 0;
}

static inline int own_rank(struct thread *t, MPI_Comm comm)
{
    const struct comm *known = comm_of(t, SCOPE(comm));
    return known ? known->rank : 0;
}

/* This rank is the root, or on the root's side of an inter-communicator. */
static inline int is_root(struct thread *t, MPI_Comm comm, int root)
{
    const struct comm *known = comm_of(t, SCOPE(comm));
    return root == MPI_ROOT || (known && !known->inter && known->rank == root);
}

/* In the group of an inter-communicator that takes no part but through its root. */
static inline int is_bystander(int root)
{
    return root == MPI_PROC_NULL;
}

static inline uint64_t destinations(struct thread *t, MPI_Comm comm)
{
    return (uint64_t)comm_destinations(comm_of(t, SCOPE(comm)), comm);
}

static inline uint64_t sum_of_counts(const int counts[], uint64_t n)
{
    uint64_t total = 0;
    for (uint64_t i = 0; i < n; i++)
        total += counts[i] > 0 ? (uint64_t)counts[i] : 0;
    return total;
}

static inline uint64_t sum_of_large_counts(const MPI_Count counts[], uint64_t n)
{
    uint64_t total = 0;
    for (uint64_t i = 0; i < n; i++)
        total += counts[i] > 0 ? (uint64_t)counts[i] : 0;
    return total;
}

#define SUM(counts, n) \
    _Generic((counts), const int *: sum_of_counts, const MPI_Count *: sum_of_large_counts)(counts, n)

#endif
