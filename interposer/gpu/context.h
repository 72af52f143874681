/* Contexts of CUDA, which whoever uses a GPU has: an MPI that is built for CUDA asks what GPUs there are, and has none. */
#ifndef LAPSCOPE_CONTEXT_H
#define LAPSCOPE_CONTEXT_H

/* Whether there may be one now, but for those that other threads made beside their GPU's own. Makes none. */
int context_may_be_there(void);

#endif
