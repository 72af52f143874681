#define _GNU_SOURCE
#include "next_dlsym.h"

#include "elf_table.h"

#include <dlfcn.h>
#include <stddef.h>

/* musl has neither: there, too, a program must start, even if nothing is recorded of it. */
#pragma weak dlvsym
#pragma weak _r_debug

extern const ElfW(Ehdr) __ehdr_start __attribute__((visibility("hidden")));

dlsym_fn *lapscope_next_dlsym __attribute__((visibility("hidden")));

static int find_by_table(struct dl_phdr_info *object, size_t size, void *found)
{
    (void)size;
    *(void **)found = is_own_object(object) ? NULL : defined_in_object(object, "dlsym", hash_of("dlsym"));
    return *(void **)found != NULL;
}

static void *find_of_libc(void)
{
    static const char *const versions[] = {"GLIBC_2.34", "GLIBC_2.2.5", "GLIBC_2.17"};
    void *found = NULL;
    for (size_t i = 0; i < sizeof versions / sizeof versions[0] && dlvsym && !found; i++)
        found = dlvsym(RTLD_NEXT, "dlsym", versions[i]);
    if (!found)
        dl_iterate_phdr(find_by_table, &found);
    return found;
}

/* Others give theirs no version, and dlvsym passes it over. What is behind us in the loader's list is in its order, libc's among it. The
 * list is read as it lies there: runtimes of sanitizers have a dl_iterate_phdr of their own, which crashes before they are up. */
static void *find_behind(void)
{
    struct table table;
    const struct link_map *map = &_r_debug ? _r_debug.r_map : NULL;
    while (map && map->l_addr != (ElfW(Addr))&__ehdr_start)
        map = map->l_next;
    while (map && (map = map->l_next)) {
        const ElfW(Sym) *symbol = read_table(map->l_ld, map->l_addr, &table) ? find_symbol(&table, "dlsym", hash_of("dlsym")) : NULL;
        if (symbol)
            return (void *)(map->l_addr + symbol->st_value);
    }
    return NULL;
}

dlsym_fn *next_dlsym(void)
{
    static void *of_libc;
    if (!__atomic_load_n(&lapscope_next_dlsym, __ATOMIC_ACQUIRE)) {
        void *behind = find_behind();
        of_libc = find_of_libc();
        __atomic_store_n(&lapscope_next_dlsym, (dlsym_fn *)(behind ? behind : of_libc), __ATOMIC_RELEASE);
    }
    return (dlsym_fn *)of_libc;
}
