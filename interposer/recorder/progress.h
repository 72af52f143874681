/*
 * One test: what drives MPI's transfers, and touches nothing of the application's. It asks for the state of a receive of our own,
 * on a communicator of our own that has this process alone for a member, so that nothing ever arrives. No request that the
 * application waits for is completed by that, and the error of none is raised: asking for the state of the application's
 * requests would raise the error of a failed one where nobody made a call (MPICH). An MPI_Iprobe there would do less: MPICH
 * then looks at messages to itself alone, and moves nothing.
 */
#ifndef LAPSCOPE_PROGRESS_H
#define LAPSCOPE_PROGRESS_H

#include <stdint.h>

/* Posts that receive; returns NULL, or why it cannot be. Said to this process alone. */
const char *progress_open(void);
void progress_close(void);

struct progress {
    uint64_t ticks;          /* that the test took; 0: MPI returned an error */
    int found;               /* so long that something moved */
};

/* Not while this thread is inside MPI. `again`: directly behind another test. Leaves errno alone. */
struct progress progress_test(int again);

/* What a test behind computation takes that finds nothing, as last seen, or before the first as expected; ticks. */
uint64_t progress_idle(void);
int progress_idle_is_known(void);

#endif
