/* A library that is linked with CUPTI, as a profiler's is. */
#define _GNU_SOURCE
#include <dlfcn.h>

__attribute__((visibility("default"))) void *profiler_asks_next(const char *name);

void *profiler_asks_next(const char *name)
{
    return dlsym(RTLD_NEXT, name);
}
