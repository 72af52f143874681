#define _GNU_SOURCE
#include "modules.h"

#include "../base/arena.h"
#include "../python/python.h"

#include <elf.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct module {
    struct module *next;
    uintptr_t begin, end, bias;
};

static struct module *modules;
static uint32_t module_count;

struct search {
    struct thread *t;
    uintptr_t address;
};

static const ElfW(Phdr) *segment_of(const struct dl_phdr_info *object, uintptr_t address)
{
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
        uintptr_t begin = object->dlpi_addr + segment->p_vaddr;
        if (segment->p_type == PT_LOAD && address >= begin && address - begin < segment->p_memsz)
            return segment;
    }
    return NULL;
}

static void extent(const struct dl_phdr_info *object, uintptr_t *begin, uintptr_t *end)
{
    *begin = UINTPTR_MAX;
    *end = 0;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
        uintptr_t at = object->dlpi_addr + segment->p_vaddr;
        if (segment->p_type != PT_LOAD)
            continue;
        *begin = at < *begin ? at : *begin;
        *end = at + segment->p_memsz > *end ? at + segment->p_memsz : *end;
    }
}

/* The GNU build id (elf(5), PT_NOTE segments); returns its length. */
static unsigned build_id(const struct dl_phdr_info *object, const unsigned char **id)
{
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
        if (segment->p_type != PT_NOTE)
            continue;
        const char *at = (const char *)(object->dlpi_addr + segment->p_vaddr), *end = at + segment->p_memsz;
        while (at + sizeof(ElfW(Nhdr)) <= end) {
            const ElfW(Nhdr) *note = (const ElfW(Nhdr) *)at;
            const char *name = at + sizeof *note, *desc = name + ((note->n_namesz + 3) & ~3u);
            if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 && !memcmp(name, "GNU", 4)) {
                *id = (const unsigned char *)desc;
                return note->n_descsz;
            }
            at = desc + ((note->n_descsz + 3) & ~3u);
        }
    }
    return 0;
}

/* The path of an object's file; `buffer` has room for the executable's. */
static const char *path_of(const struct dl_phdr_info *object, char *buffer, size_t bytes)
{
    if (object->dlpi_name && *object->dlpi_name)
        return object->dlpi_name;
    ssize_t length = readlink("/proc/self/exe", buffer, bytes - 1);
    buffer[length > 0 ? length : 0] = '\0';
    return buffer;
}

static void define(struct thread *t, const struct dl_phdr_info *object, uint32_t id, const struct module *module)
{
    char path[4096];
    const char *name = path_of(object, path, sizeof path);
    const unsigned char *build = NULL;
    unsigned build_bytes = build_id(object, &build);
    struct spool_module head = {id, module->bias, module->end - module->begin, module->begin, (uint16_t)strlen(name),
                                (uint16_t)build_bytes};
    spool_define(&t->stream, SPOOL_MODULE, &head, sizeof head, name, head.path_bytes, build, build_bytes);
}

/* A Python function is a module without a file of code. */
static void define_python(struct thread *t, uintptr_t address)
{
    struct python_function *function = python_function_of(address);
    if (!function || function->is_defined)
        return;
    function->is_defined = 1;
    struct spool_module head = {++module_count, function->begin, function->size, function->begin,
                                (uint16_t)strlen(function->file), (uint16_t)strlen(function->build_id)};
    spool_define(&t->stream, SPOOL_MODULE, &head, sizeof head, function->file, head.path_bytes, function->build_id,
                 head.build_id_bytes);
}

static int define_if_holding(struct dl_phdr_info *object, size_t size, void *context)
{
    struct search *search = context;
    (void)size;
    if (!segment_of(object, search->address))
        return 0;
    struct module *module = arena_alloc(sizeof *module);
    if (!module)
        return 1;
    extent(object, &module->begin, &module->end);
    module->bias = object->dlpi_addr;
    module->next = modules;
    modules = module;
    define(search->t, object, ++module_count, module);
    return 1;
}

void modules_define(struct thread *t, const uintptr_t *addresses, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        if (python_is_line(addresses[i])) {
            define_python(t, addresses[i]);
            continue;
        }
        const struct module *module = modules;
        while (module && (addresses[i] < module->begin || addresses[i] >= module->end))
            module = module->next;
        if (module)
            continue;
        struct search search = {t, addresses[i]};
        dl_iterate_phdr(define_if_holding, &search);
    }
}

struct place_search {
    uintptr_t address;
    struct module_place *place;
};

static int place_if_holding(struct dl_phdr_info *object, size_t size, void *context)
{
    char path[4096];
    const unsigned char *id = NULL;
    struct place_search *search = context;
    struct module_place *place = search->place;
    (void)size;
    if (!segment_of(object, search->address))
        return 0;
    const char *name = path_of(object, path, sizeof path), *slash = strrchr(name, '/');
    snprintf(place->name, sizeof place->name, "%.255s", slash ? slash + 1 : name);
    place->offset = search->address - object->dlpi_addr;
    unsigned bytes = build_id(object, &id);
    for (unsigned i = 0; i < bytes && 2 * i + 2 < sizeof place->build_id; i++)
        snprintf(place->build_id + 2 * i, 3, "%02x", id[i]);
    return 1;
}

static int python_place(uintptr_t address, struct module_place *place)
{
    const struct python_function *function = python_function_of(address);
    if (!function)
        return 0;
    const char *slash = strrchr(function->file, '/');
    snprintf(place->name, sizeof place->name, "%.255s", slash ? slash + 1 : function->file);
    snprintf(place->build_id, sizeof place->build_id, "%s", function->build_id);
    place->offset = address - function->begin;
    return 1;
}

int module_of(uintptr_t address, struct module_place *place)
{
    *place = (struct module_place){.offset = 0};
    if (python_is_line(address))
        return python_place(address, place);
    return dl_iterate_phdr(place_if_holding, &(struct place_search){address, place});
}
