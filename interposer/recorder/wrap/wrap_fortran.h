/* How wrappers of the Fortran bindings read their arguments. The real call is Fortran's own, so nothing is converted
 * for it; what is read is converted here. */
#ifndef LAPSCOPE_WRAP_FORTRAN_H
#define LAPSCOPE_WRAP_FORTRAN_H

#include "wrap.h"

#define FORTRAN 1
#define FIRST_INDEX 1
#define ADDRESS(request) request##_f
#define IN_PLACE(buffer) fortran_in_place(buffer, descriptors)
#define BUFFER(address, count, type) fortran_buffer(address, descriptors, (uint64_t)(count), type)
#define BASE(buffer) fortran_base(buffer, descriptors)
#define TEXT_HASH(text) text_hash(text, text##_length)

/* Whether an address is that of MPI_STATUS_IGNORE or MPI_STATUSES_IGNORE, which are variables in Fortran. */
int fortran_ignores(const void *status);

/* Whether a choice buffer is MPI_IN_PLACE. `descriptors`: it comes as a TS 29113 descriptor. */
int fortran_in_place(const void *buffer, int descriptors);

/* Where a choice buffer begins; likewise. NULL for MPI_BOTTOM. */
const void *fortran_base(const void *buffer, int descriptors);

/* A choice buffer; likewise. */
struct given_buffer fortran_buffer(const void *buffer, int descriptors, uint64_t count, MPI_Datatype type);

/* Whether an address is that of MPI_BOTTOM, which stands for the address 0. */
int fortran_is_bottom(const void *address);

/* A status to read also where the application wants none. In every known MPI Fortran's status is C's, taken as integers
 * (and so aligned as those). */
static inline MPI_Fint *fortran_wanted(MPI_Fint *status, MPI_Status *own)
{
    return fortran_ignores(status) ? (MPI_Fint *)own : status;
}

/* What the real call has left in it, aligned; NULL when it turns out to be ignored after all: some MPIs learn those
 * addresses at the first Fortran call. */
static inline const MPI_Status *fortran_status(const MPI_Fint *status, MPI_Status *own)
{
    if ((const void *)status == (const void *)own)
        return own;
    if (fortran_ignores(status))
        return NULL;
    memcpy(own, status, sizeof *own);
    return own;
}

static inline uint64_t fortran_typed_sum(const MPI_Fint counts[], const MPI_Fint types[], uint64_t n)
{
    uint64_t total = 0;
    for (uint64_t i = 0; i < n; i++)
        total += data(counts[i], type_f2c(types[i]));
    return total;
}

static inline uint64_t fortran_typed_large_sum(const MPI_Count counts[], const MPI_Fint types[], uint64_t n)
{
    uint64_t total = 0;
    for (uint64_t i = 0; i < n; i++)
        total += data(counts[i], type_f2c(types[i]));
    return total;
}

#define TYPED_SUM(counts, types, n) \
    _Generic((counts), const MPI_Fint *: fortran_typed_sum, const MPI_Count *: fortran_typed_large_sum)(counts, types, n)

#endif
