#define _GNU_SOURCE
#include "next_dlsym.h"

#include "elf_table.h"

#include <dlfcn.h>
#include <stddef.h>

/* musl has none: there, too, a program must start, even if nothing is recorded of it. */
#pragma weak dlvsym

dlsym_fn *lapscope_next_dlsym __attribute__((visibility("hidden")));

struct behind {
    int is_behind;
    void *found;
};

/* The first that is defined behind us, in the order in which the loader looks; of what stands before us we are not asked. */
static int find_behind(struct dl_phdr_info *object, size_t size, void *context)
{
    (void)size;
    struct behind *behind = context;
    if (is_own_object(object))
        behind->is_behind = 1;
    else if (behind->is_behind)
        behind->found = defined_in_object(object, "dlsym", hash_of("dlsym"));
    return behind->found != NULL;
}

dlsym_fn *next_dlsym(void)
{
    static const char *const versions[] = {"GLIBC_2.34", "GLIBC_2.2.5", "GLIBC_2.17"};
    if (lapscope_next_dlsym)
        return lapscope_next_dlsym;
    /* other libraries that have one of their own give it no version, which dlvsym would pass over */
    struct behind behind = {0, NULL};
    dl_iterate_phdr(find_behind, &behind);
    void *found = behind.found;
    for (size_t i = 0; i < sizeof versions / sizeof versions[0] && dlvsym && !found; i++)
        found = dlvsym(RTLD_NEXT, "dlsym", versions[i]);
    lapscope_next_dlsym = (dlsym_fn *)found;
    return lapscope_next_dlsym;
}
