/* What wrappers call in the place of MPI's functions (preload/host.h), recorded or not. */
#ifndef LAPSCOPE_SUBSTITUTES_H
#define LAPSCOPE_SUBSTITUTES_H

/* Fills in those that the options ask for, before any function has been called. */
void substitutes_install(void **table);

#endif
