/* Contexts of CUDA, which whoever uses a GPU has: an MPI that is built for CUDA asks what GPUs there are, and has none. */
#ifndef LAPSCOPE_CONTEXT_H
#define LAPSCOPE_CONTEXT_H

/* The driver is in the process. Before the others. */
void context_begin(void);

/* Remembers a context that is there now: the own one of a GPU, which CUDA's runtime uses, or this thread's. One that another thread makes
 * beside these is not seen. Makes none. */
void context_look(void);

/* Whether there may be one, now or at any look: also where the driver does not say. */
int context_may_have_been(void);

#endif
