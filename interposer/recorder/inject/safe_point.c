#define _GNU_SOURCE
#include "safe_point.h"

#include "../../preload/elf_table.h"
#include "../base/arena.h"
#include "../base/process.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

enum { MAX_OBJECTS = 4096, MAX_NEEDED = 256, MAX_SEGMENTS = 8, MALLOCS = 9 };

struct object {
    uintptr_t base;                       /* load bias */
    const char *path;                     /* the loader's: not read after the list was made */
    const char *soname;
    const ElfW(Dyn) *dynamic;
    const char *strings;
    struct table table;                   /* nothing: it has none */
    struct { uintptr_t begin, end; } code[MAX_SEGMENTS];
    int segments;
    int is_program;                       /* the executable */
    int mpi_reaches;                      /* MPI may come here */
};

/* What signal handlers read: sorted by address, replaced as a whole, never freed. */
struct map {
    unsigned count;
    struct { uintptr_t begin, end; } code[];
};

static struct map *safe;
static struct { unsigned long long adds, subs; } seen;
static uintptr_t known_bases[MAX_OBJECTS]; /* of objects that were there before MPI, and of those classified since */
static unsigned char known_class[MAX_OBJECTS];
static unsigned known_count;
static int mpi_is_up;
static char problem[256];

enum class { OF_PROGRAM, OF_MPI };

/* --- the list of objects ------------------------------------------------------------------------------------------ */

struct list {
    struct object *objects;
    unsigned count;
};

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Entries of the dynamic section that hold addresses: relocated by glibc, but not in objects that it did not load
 * (vdso). */
static void read_dynamic(struct object *object)
{
    const ElfW(Dyn) *name = NULL;
    for (const ElfW(Dyn) *entry = object->dynamic; entry && entry->d_tag != DT_NULL; entry++) {
        if (entry->d_tag == DT_STRTAB)
            object->strings = (const char *)(entry->d_un.d_ptr < object->base ? object->base + entry->d_un.d_ptr
                                                                            : entry->d_un.d_ptr);
        if (entry->d_tag == DT_SONAME)
            name = entry;
    }
    object->soname = name && object->strings ? object->strings + name->d_un.d_val : base_name(object->path);
}

static int add_object(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)size;
    struct list *list = context;
    if (list->count == MAX_OBJECTS)
        return 1;
    struct object *object = &list->objects[list->count];
    *object = (struct object){.base = info->dlpi_addr, .path = info->dlpi_name ? info->dlpi_name : "",
                              .is_program = list->count == 0};
    list->count++;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        uintptr_t begin = info->dlpi_addr + segment->p_vaddr;
        if (segment->p_type == PT_DYNAMIC)
            object->dynamic = (const ElfW(Dyn) *)begin;
        if (segment->p_type == PT_LOAD && segment->p_flags & PF_X && object->segments < MAX_SEGMENTS) {
            object->code[object->segments].begin = begin;
            object->code[object->segments++].end = begin + segment->p_memsz;
        }
    }
    read_dynamic(object);
    if (!read_table(object->dynamic, object->base, &object->table))
        object->table = (struct table){NULL, NULL, NULL};
    seen.adds = info->dlpi_adds;
    seen.subs = info->dlpi_subs;
    return 0;
}

static int has_changed(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)size;
    *(int *)context = info->dlpi_adds != seen.adds || info->dlpi_subs != seen.subs;
    return 1;
}

/* --- what MPI may come to ----------------------------------------------------------------------------------------- */

static int holds(const struct object *object, uintptr_t address)
{
    for (int i = 0; i < object->segments; i++)
        if (address >= object->code[i].begin && address < object->code[i].end)
            return 1;
    return 0;
}

static struct object *named(const struct list *list, const char *name)
{
    for (unsigned i = 0; i < list->count; i++)
        if (list->objects[i].soname[0] == name[0] && !strcmp(list->objects[i].soname, name))
            return &list->objects[i];
    return NULL;
}

/* Marks an object, what it needs, what that needs, and so on. */
static void reach(const struct list *list, struct object *object)
{
    if (!object || object->mpi_reaches)
        return;
    object->mpi_reaches = 1;
    for (const ElfW(Dyn) *entry = object->dynamic; entry && object->strings && entry->d_tag != DT_NULL; entry++)
        if (entry->d_tag == DT_NEEDED)
            reach(list, named(list, object->strings + entry->d_un.d_val));
}

static int begins_with(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

static int is_one_of(const struct object *object, const char *const *prefixes)
{
    for (; *prefixes; prefixes++)
        if (begins_with(base_name(object->soname), *prefixes))
            return 1;
    return 0;
}

/* Needed by programs and by MPI alike: says nothing of whose an object is. */
static int is_everybodys(const struct object *object)
{
    static const char *const prefixes[] = {"libc.so", "libm.so", "libmvec.so", "libdl.so", "libpthread.so", "librt.so",
                                           "ld-linux", "libgcc_s.so", "libstdc++.so", "libz.so", NULL};
    return is_one_of(object, prefixes);
}

/* Opened by the C library itself as it needs them. */
static int is_part_of_libc(const struct object *object)
{
    static const char *const prefixes[] = {"libc.so",    "libpthread.so", "libdl.so",  "librt.so",     "ld-linux", "libgcc_s.so",
                                           "libnss_",    "libresolv.so",  "linux-vdso", "liblapscope", "libunwind", NULL};
    return is_one_of(object, prefixes) || strstr(object->path, "/gconv/") != NULL;
}

/* Of a GPU's driver, which may be initialised at this moment, with its locks held, and which MPI asks what an address is; and what it
 * loads then. */
static int is_of_accelerator(const struct object *object)
{
    static const char *const prefixes[] = {"libcuda", "libcupti.so", "libnvidia-", NULL};
    return is_one_of(object, prefixes);
}

/* Has functions of arithmetic alone, which nothing can find half done. */
static int is_stateless(const struct object *object)
{
    static const char *const prefixes[] = {"libm.so", "libmvec.so", NULL};
    return is_one_of(object, prefixes);
}

/* One of MPI's own plug-ins: it needs something that only MPI does. */
static int is_plugin(const struct list *list, const struct object *object, const struct object *mpi_library)
{
    for (const ElfW(Dyn) *entry = object->dynamic; entry && object->strings && entry->d_tag != DT_NULL; entry++) {
        const struct object *needed =
            entry->d_tag == DT_NEEDED ? named(list, object->strings + entry->d_un.d_val) : NULL;
        if (needed && needed != mpi_library && needed->mpi_reaches && !is_everybodys(needed))
            return 1;
    }
    return 0;
}

static int was_preloaded(const struct object *object)
{
    const char *at = getenv("LD_PRELOAD"), *name = base_name(object->path);
    for (size_t length; *name && at && *at; at += length) {
        at += strspn(at, ": ");
        length = strcspn(at, ": ");
        const char *last = at;
        for (const char *c = at; c < at + length; c++)
            last = *c == '/' ? c + 1 : last;
        if ((size_t)(at + length - last) == strlen(name) && !strncmp(last, name, strlen(name)))
            return 1;
    }
    return 0;
}

/* The function that this object, and what it needs, has under that name. */
static void *function_from(const struct object *object, const char *name)
{
    void *handle = *object->path ? dlopen(object->path, RTLD_LAZY | RTLD_NOLOAD) : NULL;
    void *function = handle ? dlsym(handle, name) : NULL;
    if (handle)
        dlclose(handle);
    return function;
}

/* Which object has the function of that name for everybody. The address that the loader gives may lie in an executable which only
 * has a jump to it: where one was linked without PIE and takes the function's address, all take it for the function itself. */
static struct object *provider(const struct list *list, const char *name)
{
    Dl_info info;
    const ElfW(Sym) *symbol = NULL;
    void *function = process_symbol(name);
    int is_known = function && dladdr1(function, &info, (void **)&symbol, RTLD_DL_SYMENT) && symbol;
    int is_jump = is_known && (info.dli_saddr != function || symbol->st_shndx == SHN_UNDEF);
    for (unsigned i = is_jump ? 1 : 0; function && i < list->count; i++) { /* the first one is the executable */
        void *here = is_jump ? function_from(&list->objects[i], name) : function;
        if (here && holds(&list->objects[i], (uintptr_t)here))
            return &list->objects[i];
    }
    return NULL;
}

static void note_own_function(const char *name)
{
    snprintf(problem, sizeof problem, "the program's executable brings a %.40s of its own, which MPI uses too: interrupted "
             "anywhere, it might be inside of it; LAPSCOPE_INJECT=thread does without interrupts", name);
}

/* Whoever provides what MPI allocates with. */
static void reach_allocators(const struct list *list)
{
    static const char *const names[MALLOCS] = {"malloc", "free", "calloc", "realloc", "memalign", "posix_memalign",
                                               "aligned_alloc", "mmap", "munmap"};
    *problem = '\0';
    for (int i = 0; i < MALLOCS; i++) {
        struct object *object = provider(list, names[i]);
        if (!object)
            continue;
        object->mpi_reaches = 1;
        if (object->is_program)
            note_own_function("malloc"); /* with whichever other of these */
    }
}

/* The first object that defines a name is whose function everybody gets; NULL also where it is no function: executables have
 * copies of variables. */
static struct object *first_with(const struct list *list, const char *name)
{
    uint32_t hash = hash_of(name);
    for (unsigned i = 0; i < list->count; i++) {
        struct object *object = &list->objects[i];
        const ElfW(Sym) *symbol = object->table.gnu_hash ? find_symbol(&object->table, name, hash) : NULL;
        if (symbol)
            return ELF64_ST_TYPE(symbol->st_info) == STT_OBJECT ? NULL : object;
    }
    return NULL;
}

/* Whoever provides any other function that MPI's own objects ask for, which drivers of GPUs are not: a program may have one that is
 * called so, with a lock of its own. Symbols that an object only asks for come first in its table. */
static void reach_definers(const struct list *list)
{
    for (unsigned i = 1; i < list->count; i++) { /* the first one is the executable */
        const struct object *asker = &list->objects[i];
        const struct table *table = &asker->table;
        if (!asker->mpi_reaches || !table->gnu_hash || is_everybodys(asker) || is_part_of_libc(asker) || is_of_accelerator(asker))
            continue;
        for (uint32_t k = 1; k < table->gnu_hash[1]; k++) {
            const char *name = table->names + table->symbols[k].st_name;
            int is_c_name = table->symbols[k].st_shndx == SHN_UNDEF && *name && *name != '_';
            struct object *definer = is_c_name ? first_with(list, name) : NULL;
            if (!definer || is_everybodys(definer) || is_part_of_libc(definer))
                continue;
            definer->mpi_reaches = 1;
            if (definer->is_program && !*problem)
                note_own_function(name);
        }
    }
}

/* --- classes ------------------------------------------------------------------------------------------------------ */

static int known_as(uintptr_t base)
{
    for (unsigned i = 0; i < known_count; i++)
        if (known_bases[i] == base)
            return known_class[i];
    return -1;
}

static void remember(uintptr_t base, enum class class)
{
    if (known_count < MAX_OBJECTS) {
        known_bases[known_count] = base;
        known_class[known_count++] = (unsigned char)class;
    }
}

/* Objects that are gone may have made room for others. */
static void forget_unloaded(const struct list *list)
{
    unsigned kept = 0;
    for (unsigned i = 0; i < known_count; i++)
        for (unsigned j = 0; j < list->count; j++)
            if (list->objects[j].base == known_bases[i]) {
                known_bases[kept] = known_bases[i];
                known_class[kept++] = known_class[i];
                break;
            }
    known_count = kept;
}

static void mark(const struct list *list, uintptr_t mpi)
{
    struct object *mpi_library = NULL;
    for (unsigned i = 0; i < list->count && !mpi_library; i++)
        if (holds(&list->objects[i], mpi))
            mpi_library = &list->objects[i];
    reach(list, mpi_library);
    int first = !mpi_is_up;
    mpi_is_up = 1;
    for (unsigned i = 0; i < list->count; i++) {
        struct object *object = &list->objects[i];
        int class = known_as(object->base);
        if (class < 0) {
            class = first || is_plugin(list, object, mpi_library) ? OF_MPI : OF_PROGRAM;
            remember(object->base, (enum class)class);
        }
        if (class == OF_MPI)
            reach(list, object);
    }
    for (unsigned i = 0; i < list->count; i++)
        if (is_part_of_libc(&list->objects[i]) || is_of_accelerator(&list->objects[i]) || was_preloaded(&list->objects[i]))
            list->objects[i].mpi_reaches = 1;
    reach_allocators(list);
    reach_definers(list);
}

static int by_address(const void *a, const void *b)
{
    uintptr_t left = *(const uintptr_t *)a, right = *(const uintptr_t *)b;
    return left < right ? -1 : left > right;
}

static int publish(const struct list *list)
{
    struct map *map = arena_alloc(sizeof *map + list->count * MAX_SEGMENTS * sizeof map->code[0]);
    if (!map)
        return 0;
    uintptr_t vdso = getauxval(AT_SYSINFO_EHDR);
    int has_accelerator = 0; /* its driver may compute anywhere while it holds a lock that MPI waits for */
    for (unsigned i = 0; i < list->count; i++)
        has_accelerator |= is_of_accelerator(&list->objects[i]);
    for (unsigned i = 0; i < list->count; i++) {
        const struct object *object = &list->objects[i];
        if ((is_stateless(object) ? has_accelerator : object->mpi_reaches) || object->base == vdso)
            continue;
        for (int j = 0; j < object->segments; j++) {
            map->code[map->count].begin = object->code[j].begin;
            map->code[map->count++].end = object->code[j].end;
        }
    }
    qsort(map->code, map->count, sizeof map->code[0], by_address);
    __atomic_store_n(&safe, map, __ATOMIC_RELEASE);
    return 1;
}

static struct object *scratch(void)
{
    static struct object *objects;
    if (!objects)
        objects = arena_alloc(MAX_OBJECTS * sizeof *objects);
    return objects;
}

void safe_point_before_mpi(void)
{
    struct list list = {scratch(), 0};
    if (!list.objects)
        return;
    dl_iterate_phdr(add_object, &list);
    for (unsigned i = 0; i < list.count; i++)
        remember(list.objects[i].base, OF_PROGRAM);
}

static int draw_anew(uintptr_t mpi)
{
    struct list list = {scratch(), 0};
    if (!list.objects)
        return 0;
    dl_iterate_phdr(add_object, &list);
    forget_unloaded(&list);
    mark(&list, mpi);
    return publish(&list);
}

int safe_point_update(uintptr_t mpi)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    int changed = 0;
    dl_iterate_phdr(has_changed, &changed);
    if (!changed && safe)
        return 1;
    pthread_mutex_lock(&lock);
    int drawn = draw_anew(mpi);
    pthread_mutex_unlock(&lock);
    return drawn;
}

int safe_point_holds(uintptr_t address)
{
    const struct map *map = __atomic_load_n(&safe, __ATOMIC_ACQUIRE);
    unsigned low = 0, high = map ? map->count : 0;
    while (low < high) {
        unsigned middle = (low + high) / 2;
        if (address >= map->code[middle].end)
            low = middle + 1;
        else
            high = middle;
    }
    return map && low < map->count && address >= map->code[low].begin;
}

const char *safe_point_problem(void)
{
    return *problem ? problem : NULL;
}
