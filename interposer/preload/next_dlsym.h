/* The dlsym behind ours, which this library must use itself: libc's, or that of another library that has one. */
#ifndef LAPSCOPE_NEXT_DLSYM_H
#define LAPSCOPE_NEXT_DLSYM_H

typedef void *dlsym_fn(void *handle, const char *name);

dlsym_fn *next_dlsym(void) __attribute__((visibility("hidden")));

/* The same once it was looked for, for our own dlsym, which jumps there (trampoline.S). */
extern dlsym_fn *lapscope_next_dlsym __attribute__((visibility("hidden")));

#endif
