#define _GNU_SOURCE
#include "client.h"

#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Libraries of CUPTI in the process, and objects that are linked with one. */
struct clients {
    unsigned libraries, linked;
};

static struct clients at_begin;
static char library[4096];
static int was_asked, has_come;
static int counts_linked; /* as clients, who may be none */

static const char *strings_of(const ElfW(Dyn) *dynamic, ElfW(Addr) base)
{
    for (; dynamic && dynamic->d_tag != DT_NULL; dynamic++)
        if (dynamic->d_tag == DT_STRTAB) /* glibc has made it an address, but not that of the vDSO */
            return (const char *)(dynamic->d_un.d_ptr < base ? base + dynamic->d_un.d_ptr : dynamic->d_un.d_ptr);
    return NULL;
}

static int is_linked(const ElfW(Dyn) *dynamic, ElfW(Addr) base)
{
    const char *strings = strings_of(dynamic, base);
    for (; strings && dynamic->d_tag != DT_NULL; dynamic++)
        if (dynamic->d_tag == DT_NEEDED && strncmp(strings + dynamic->d_un.d_val, "libcupti.so", strlen("libcupti.so")) == 0)
            return 1;
    return 0;
}

static int note_object(struct dl_phdr_info *object, size_t size, void *context)
{
    (void)size;
    struct clients *clients = context;
    int is_cupti = strstr(object->dlpi_name, "/libcupti.so") != NULL;
    clients->libraries += is_cupti;
    if (is_cupti && !*library)
        snprintf(library, sizeof library, "%s", object->dlpi_name);
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
        if (segment->p_type == PT_DYNAMIC && is_linked((const ElfW(Dyn) *)(object->dlpi_addr + segment->p_vaddr), object->dlpi_addr))
            clients->linked++;
    }
    return 0;
}

static struct clients now(void)
{
    struct clients clients = {0, 0};
    dl_iterate_phdr(note_object, &clients);
    return clients;
}

const char *client_library(void)
{
    return now().libraries ? library : NULL;
}

int client_is_linked(void)
{
    return now().linked > 0;
}

void client_begin(int is_shared)
{
    counts_linked = !is_shared;
    at_begin = now();
}

/* A client begins with one of these; the newer ones end in _v2. */
void client_asked(const char *name)
{
    static const char *const begins[] = {"cuptiSubscribe", "cuptiActivityRegisterCallbacks"};
    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++)
        if (strncmp(name, begins[i], strlen(begins[i])) == 0)
            __atomic_store_n(&was_asked, 1, __ATOMIC_RELAXED);
}

int client_has_asked(void)
{
    return __atomic_load_n(&was_asked, __ATOMIC_RELAXED);
}

int client_came(void)
{
    struct clients clients = now();
    if (client_has_asked() || clients.libraries > at_begin.libraries || (counts_linked && clients.linked > at_begin.linked))
        __atomic_store_n(&has_come, 1, __ATOMIC_RELAXED);
    return __atomic_load_n(&has_come, __ATOMIC_RELAXED);
}
