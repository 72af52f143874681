/* How the kinds of buffers in reach_buffers.c are exchanged, mapped and described. */
#ifndef REACH_BUFFERS_H
#define REACH_BUFFERS_H

#include "check.h"

#include <pthread.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FIRST_TAG = 500, ROUNDS = 20, BYTES = 4096, COLUMN = 200, WIDTH = 7 };

static int peer;

/* What is in `out` goes to the other rank, and what that has comes. */
static inline void exchange_as_it_is(char *out, char *in, int bytes, int tag)
{
    MPI_Request requests[2];
    MPI_Irecv(in, bytes, MPI_BYTE, peer, tag, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(out, bytes, MPI_BYTE, peer, tag, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

/* BYTES that the caller has filled, in turn non-blocking and blocking. */
static inline void exchange(char *out, char *in, int tag, int round)
{
    if (round % 3)
        exchange_as_it_is(out, in, BYTES, tag);
    else
        MPI_Sendrecv(out, BYTES, MPI_BYTE, peer, tag, in, BYTES, MPI_BYTE, peer, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* Fills, exchanges and checks. */
static inline void exchange_bytes(char *out, char *in, int bytes, int tag, int round)
{
    fill(out, bytes, round);
    exchange_as_it_is(out, in, bytes, tag);
    CHECK(holds(in, bytes, round));
}

static inline char *map(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    return memory;
}

/* BYTES at an absolute address, in two blocks. */
static inline MPI_Datatype type_at(char *buffer)
{
    int lengths[2] = {BYTES / 2, BYTES / 2};
    MPI_Aint at[2];
    MPI_Datatype type;
    MPI_Get_address(buffer, &at[0]);
    MPI_Get_address(buffer + BYTES / 2, &at[1]);
    MPI_Type_create_hindexed(2, lengths, at, MPI_BYTE, &type);
    MPI_Type_commit(&type);
    return type;
}

static inline int exit_code_of(pid_t child)
{
    int status;
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

#endif
