/* Messages that MPI_Mprobe or MPI_Improbe has matched and nobody has received yet. */
#ifndef LAPSCOPE_MATCHED_H
#define LAPSCOPE_MATCHED_H

#include "message.h"

/* `handle` stands for `message`. */
void matched_remember(struct thread *t, MPI_Message handle, const struct message *message);

/* The message behind a handle that is about to be received; of any source where it was matched unseen. */
struct message matched_take(MPI_Message handle);

#endif
