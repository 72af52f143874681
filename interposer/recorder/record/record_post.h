/* The post of a request, in the wrappers that programs call most. */
#ifndef LAPSCOPE_RECORD_POST_H
#define LAPSCOPE_RECORD_POST_H

#include "post_again.h"

/* A request was made. `variable` is where the application keeps its handle. Returns its entry, or NULL when there is no room for it.
 * `message` comes by value: where it need not be in memory it never is. */
static inline ALWAYS_INLINE struct spool_live *record_post(struct thread *t, enum call call, struct caller caller, uint64_t begin,
                                                           uint64_t end, struct message message, MPI_Request handle,
                                                           const void *variable)
{
    int is_here = call == CALL_MPI_Isend || call == CALL_MPI_Irecv;
    struct spool_live *live = is_here ? post_again(t, call, caller, begin, end, &message, handle, variable) : NULL;
    if (LIKELY(live != NULL))
        return live;
    struct message own = message;
    return (is_here ? record_post_slowly : record_post_apart)(t, call, caller, begin, end, &own, handle, variable);
}

#endif
