#include "matched.h"

#include "../base/arena.h"
#include "comm.h"

#include <pthread.h>

enum { BUCKETS = 64 };

struct matched {
    struct matched *next;
    uint64_t key;
    struct message message;
};

static struct matched *buckets[BUCKETS], *unused;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* among threads that match messages alone */

static struct matched **find(uint64_t key)
{
    struct matched **link = &buckets[(key * 0x9e3779b97f4a7c15u) >> 58];
    while (*link && (*link)->key != key)
        link = &(*link)->next;
    return link;
}

void matched_remember(struct thread *t, MPI_Message handle, const struct message *message)
{
    if (handle == mpi.message_no_proc)
        return; /* one constant for all of them */
    pthread_mutex_lock(&lock);
    struct matched **link = find(message_key(handle)), *matched = *link;
    if (!matched) {
        matched = unused ? unused : arena_alloc(sizeof *matched);
        if (matched && matched == unused)
            unused = matched->next;
        if (matched) {
            matched->next = NULL;
            *link = matched;
        }
    }
    if (matched) {
        matched->key = message_key(handle);
        matched->message = *message;
        matched->message.comm = comm_of(t, message->scope);
        matched->message.bytes = 0;
    }
    pthread_mutex_unlock(&lock);
}

struct message matched_take(MPI_Message handle)
{
    if (handle == mpi.message_no_proc)
        return from(MPI_PROC_NULL, MPI_ANY_TAG, NO_SCOPE);
    struct message message = from(MPI_ANY_SOURCE, MPI_ANY_TAG, NO_SCOPE);
    pthread_mutex_lock(&lock);
    struct matched **link = find(message_key(handle)), *matched = *link;
    if (matched) {
        message = matched->message;
        *link = matched->next;
        matched->next = unused;
        unused = matched;
    }
    pthread_mutex_unlock(&lock);
    return message;
}
