/* One wrapper for each call of calls.def, with the prototype that this MPI's mpi.h gives it. */
#ifndef LAPSCOPE_WRAPPERS_H
#define LAPSCOPE_WRAPPERS_H

#include "comm.h"
#include "record.h"

#pragma GCC visibility push(hidden)
#define CALL(name, family, role) extern __typeof__(name) wrap_##name;
#if MPI_VERSION < 4
#define CALL_LARGE(name, family, role)
#endif
#include "../calls.def"
#undef CALL
#pragma GCC visibility pop

static inline struct message message_to(int dest, int tag, MPI_Comm comm)
{
    return (struct message){SPOOL_SEND, peer_code(dest), tag_code(tag), comm, 0};
}

static inline struct message message_from(int source, int tag, MPI_Comm comm)
{
    return (struct message){SPOOL_RECV, peer_code(source), tag_code(tag), comm, 0};
}

#endif
