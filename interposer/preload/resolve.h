/* Where the slots lead. */
#ifndef LAPSCOPE_RESOLVE_H
#define LAPSCOPE_RESOLVE_H

/* A program asks by a handle for a function that is `found`: whether our entry for its symbol leads, or will lead, to it,
 * so that the program may be told of our entry. */
int resolve_tells(unsigned symbol, void *found) __attribute__((visibility("hidden")));

#endif
