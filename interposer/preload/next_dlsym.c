#define _GNU_SOURCE
#include "next_dlsym.h"

#include "elf_table.h"

#include <dlfcn.h>
#include <stddef.h>

/* musl has none: there, too, a program must start, even if nothing is recorded of it. */
#pragma weak dlvsym

dlsym_fn *lapscope_next_dlsym __attribute__((visibility("hidden")));

static int find_by_table(struct dl_phdr_info *object, size_t size, void *found)
{
    (void)size;
    *(void **)found = is_own_object(object) ? NULL : defined_in_object(object, "dlsym", hash_of("dlsym"));
    return *(void **)found != NULL;
}

dlsym_fn *next_dlsym(void)
{
    static const char *const versions[] = {"GLIBC_2.34", "GLIBC_2.2.5", "GLIBC_2.17"};
    void *found = lapscope_next_dlsym;
    for (size_t i = 0; i < sizeof versions / sizeof versions[0] && dlvsym && !found; i++)
        found = dlvsym(RTLD_NEXT, "dlsym", versions[i]);
    if (!found)
        dl_iterate_phdr(find_by_table, &found);
    lapscope_next_dlsym = (dlsym_fn *)found;
    return lapscope_next_dlsym;
}
