/* Those behind our own dlsym. */
#ifndef LAPSCOPE_NEXT_DLSYM_H
#define LAPSCOPE_NEXT_DLSYM_H

typedef void *dlsym_fn(void *handle, const char *name);

/* libc's, which this library must use itself. Finds the one below, too. */
dlsym_fn *next_dlsym(void) __attribute__((visibility("hidden")));

/* The one that would be called without us, once both were looked for: libc's, or that of another library that has one. Our own dlsym
 * jumps there (trampoline.S). */
extern dlsym_fn *lapscope_next_dlsym __attribute__((visibility("hidden")));

#endif
