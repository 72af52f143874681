/*
 * What a call communicates, in the spool's terms: the words that clauses of calls.def are written in.
 */
#ifndef LAPSCOPE_MESSAGE_H
#define LAPSCOPE_MESSAGE_H

#include "../../../schema/spool.h"
#include "../base/mpi_api.h"
#include "thread.h"

/* Among whom: a communicator, or the group behind a window or file. Their handles never coincide (mpi_api.h). */
enum scope_kind { SCOPE_NONE, SCOPE_COMM, SCOPE_WINDOW, SCOPE_FILE };

struct scope {
    uint64_t key;            /* the handle */
    enum scope_kind kind;
};

#define NO_SCOPE ((struct scope){0, SCOPE_NONE})
#define SCOPE(comm) ((struct scope){comm_key(comm), SCOPE_COMM})
#define WINDOW(win) ((struct scope){win_key(win), SCOPE_WINDOW})
#define IN_FILE(file) ((struct scope){file_key(file), SCOPE_FILE})
#define COMM_KEY(comm) comm_key(comm)
#define WINDOW_KEY(win) win_key(win)
#define FILE_KEY(file) file_key(file)

/* Arguments of a communication as the application gave them, or as they came. Pointers come first: what is cleared in
 * one go is then not read back across two stores, which would have to reach memory before. */
struct message {
    const struct comm *comm;       /* where it is known already: the scope is then not looked up */
    const struct message *receive; /* the receiving half of a call that also sends; its bytes may follow later */
    const struct operation *related; /* see struct operation */
    uint64_t bytes;
    struct scope scope;
    enum spool_kind kind;
    int32_t peer, tag;             /* see peer_code, tag_code */
};

/* From an MPI rank argument: ranks as they are, MPI's constants (which differ between ABIs) as the spool's. */
static inline int32_t peer_code(int rank)
{
    return LIKELY(rank >= 0)        ? rank
           : rank == MPI_ANY_SOURCE ? SPOOL_ANY_SOURCE
           : rank == MPI_PROC_NULL  ? SPOOL_PROC_NULL
                                    : SPOOL_NO_PEER;
}

static inline int32_t tag_code(int tag)
{
    return LIKELY(tag >= 0) ? tag : tag == MPI_ANY_TAG ? SPOOL_ANY_TAG : SPOOL_NO_TAG;
}

static inline struct message message_of(enum spool_kind kind, int32_t peer, int32_t tag, struct scope scope)
{
    return (struct message){.kind = kind, .peer = peer, .tag = tag, .scope = scope};
}

static inline struct message nothing(void)
{
    return message_of(SPOOL_OTHER, SPOOL_NO_PEER, SPOOL_NO_TAG, NO_SCOPE);
}

static inline struct message to(int dest, int tag, struct scope scope)
{
    return message_of(SPOOL_SEND, peer_code(dest), tag_code(tag), scope);
}

static inline struct message from(int source, int tag, struct scope scope)
{
    return message_of(SPOOL_RECV, peer_code(source), tag_code(tag), scope);
}

static inline struct message rooted(int root, struct scope scope)
{
    return message_of(SPOOL_COLLECTIVE, root == MPI_ROOT ? SPOOL_ROOT : peer_code(root), SPOOL_NO_TAG, scope);
}

static inline struct message unrooted(struct scope scope)
{
    return message_of(SPOOL_COLLECTIVE, SPOOL_NO_PEER, SPOOL_NO_TAG, scope);
}

/* Nothing of which more is known than the communicator. */
static inline struct message over(struct scope scope)
{
    return message_of(SPOOL_OTHER, SPOOL_NO_PEER, SPOOL_NO_TAG, scope);
}

static inline struct message io(struct scope scope)
{
    return message_of(SPOOL_IO, SPOOL_NO_PEER, SPOOL_NO_TAG, scope);
}

static inline struct message generalized(void)
{
    return message_of(SPOOL_GENERALIZED, SPOOL_NO_PEER, SPOOL_NO_TAG, NO_SCOPE);
}

enum { NO_PEER = INT32_MIN }; /* not a rank, nor a constant of any MPI */

static inline struct message rma(int target, struct scope scope)
{
    return message_of(SPOOL_RMA, peer_code(target), SPOOL_NO_TAG, scope);
}

/* count elements of a datatype, in bytes; `count` comes from a call that has succeeded. */
#define data(count, type) bytes_of((uint64_t)(count), type)

#endif
