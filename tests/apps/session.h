/* What programs that use sessions of MPI-4 need. */
#ifndef SESSION_H
#define SESSION_H

#include "check.h"

enum { SESSION_BYTES = 32 };

static inline MPI_Session open_session(void)
{
    MPI_Session session;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
    return session;
}

static inline MPI_Comm world_of(MPI_Session session, const char *name)
{
    MPI_Group group;
    MPI_Comm comm;
    MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
    MPI_Comm_create_from_group(group, name, MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
    MPI_Group_free(&group);
    return comm;
}

/* Between two ranks; returns this rank. */
static inline int exchange(MPI_Comm comm, int tag)
{
    char out[SESSION_BYTES], in[SESSION_BYTES];
    int rank = comm_rank(comm), peer = 1 - rank;
    MPI_Request requests[2];
    fill(out, SESSION_BYTES, rank);
    MPI_Irecv(in, SESSION_BYTES, MPI_BYTE, peer, tag, comm, &requests[0]);
    MPI_Isend(out, SESSION_BYTES, MPI_BYTE, peer, tag, comm, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    if (comm_size(comm) != 2 || !holds(in, SESSION_BYTES, peer)) {
        fputs("wrong data\n", stderr);
        exit(99);
    }
    return rank;
}

#endif
