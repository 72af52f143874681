/* Functions of MPI that programs ask for by a handle of dlopen. */
#ifndef LAPSCOPE_BY_HANDLE_H
#define LAPSCOPE_BY_HANDLE_H

typedef void *dlsym_fn(void *handle, const char *name);

/* The dlsym behind ours, which this library must use itself: libc's, or that of another library that has one. */
dlsym_fn *next_dlsym(void) __attribute__((visibility("hidden")));

/* What a program was told stands behind our entry for a symbol; NULL: nothing by a handle. */
void *told_by_handle(unsigned symbol) __attribute__((visibility("hidden")));

/* The first of them; NULL: there was none. */
void *first_told_by_handle(void) __attribute__((visibility("hidden")));

/* resolve.c: whether our entry for a symbol leads, or will lead, to `found`. */
int resolve_may_serve(unsigned symbol, const void *found) __attribute__((visibility("hidden")));

#endif
