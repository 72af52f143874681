/*
 * One test: what drives MPI's transfers, and touches nothing of the application's. It asks for the state of a receive
 * of our own, on a communicator of our own that has this process alone for a member, so that nothing ever arrives. No
 * request that the application waits for is completed by that, and the error of none is raised: asking for the state of
 * the application's requests would raise the error of a failed one where nobody made a call (MPICH). An MPI_Iprobe
 * there would do less: MPICH then looks at messages to itself alone, and moves nothing.
 *
 * Tests repeat while they find something. MPICH 4.0 moves 16 MB over shared memory in many small steps: one MPI_Testall
 * each millisecond hides nothing of that, repeated tests nearly all. Whether a test moved something is told by its
 * time; a processor that was taken away looks like it, and makes the next test come sooner than need be, and no worse.
 */
#ifndef LAPSCOPE_PROGRESS_H
#define LAPSCOPE_PROGRESS_H

#include <stdint.h>

/* Makes that communicator; returns NULL, or why it cannot be. While MPI starts: later the application may have attributes on
 * MPI_COMM_SELF, with functions that a copy calls. */
const char *progress_open(void);
/* Posts that receive, and finds out what a test takes; before the first test. */
const char *progress_prepare(void);
void progress_close(void);

/* What a test took, in ticks: of the processor, and from its begin to its end. The two differ where the thread had to
 * let others have the processor, or MPI let them (Open MPI's mpi_yield_when_idle). */
struct progress {
    uint64_t used, passed;
    int found;               /* it used so much that something moved */
    int failed;              /* MPI returned an error */
};

/* Not while this thread is inside MPI. `again`: directly behind another test. Leaves errno alone. */
struct progress progress_test(int again);

/* What a test behind computation uses that finds nothing, as last seen, or before the first as expected; ticks. */
uint64_t progress_idle(void);
int progress_idle_is_known(void);

#endif
