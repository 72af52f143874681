#define _GNU_SOURCE
#include "function.h"

#include "../base/arena.h"
#include "../base/intern.h"
#include "python.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { ADDRESS_BITS = 44, COLUMN_BITS = 12, PAGE_FUNCTIONS = 1024, PAGES = 8, FILES_FIRST = 2 * PYTHON_FILE_BYTES };

/* What tells functions apart, padded with zeros. */
struct key {
    char file[FILES_FIRST];
    char name[PYTHON_NAME_BYTES];
};

struct entry {
    uint64_t hash;                       /* the first member: intern.h */
    struct python_function function;
    char text[];                         /* file, then build id */
};

static struct entry **pages[PAGES];      /* by number */
static uint32_t count;
static struct {
    struct entry **slots;                /* by hash; twice as many as there can be */
    uint32_t mask;
} table;
static struct key key;                   /* under the lock */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static const char prefix[] = "python:";

/* Names of files may be relative to where the interpreter was started. */
static void make_absolute(char *file)
{
    char whole[FILES_FIRST];
    if (*file == '/' || *file == '<' || *file == '?' || access(file, F_OK) != 0 || !getcwd(whole, sizeof whole))
        return;
    size_t used = strlen(whole), more = strlen(file);
    if (used + more + 2 > sizeof whole)
        return;
    whole[used] = '/';
    memcpy(whole + used + 1, file, more + 1);
    memcpy(file, whole, used + more + 2);
}

static int is_of(const struct entry *entry, uint64_t hash)
{
    return entry->hash == hash && strcmp(entry->function.file, key.file) == 0 &&
           strcmp(entry->function.build_id + sizeof prefix - 1, key.name) == 0;
}

static struct entry *make_entry(uint64_t hash)
{
    size_t file_bytes = strlen(key.file) + 1, name_bytes = strlen(key.name) + 1;
    uint32_t page = count / PAGE_FUNCTIONS;
    if (count == PAGES * PAGE_FUNCTIONS - 1 && *key.file != '?') /* room for what stands for the rest */
        return NULL;
    if (page < PAGES && !pages[page])
        pages[page] = arena_alloc(PAGE_FUNCTIONS * sizeof *pages[page]);
    struct entry *entry = page < PAGES && pages[page]
                              ? arena_alloc(sizeof *entry + file_bytes + sizeof prefix + name_bytes) : NULL;
    if (!entry)
        return NULL;
    memcpy(entry->text, key.file, file_bytes);
    snprintf(entry->text + file_bytes, sizeof prefix + name_bytes, "%s%s", prefix, key.name);
    entry->hash = hash;
    entry->function = (struct python_function){.begin = (uintptr_t)1 << 63 | (uintptr_t)count << ADDRESS_BITS,
                                               .size = (uint64_t)1 << ADDRESS_BITS, .file = entry->text,
                                               .build_id = entry->text + file_bytes};
    pages[page][count % PAGE_FUNCTIONS] = entry;
    count++;
    return entry;
}

/* The entry of the key. NULL: there are too many, or there is no memory. */
static struct entry *entry_of_key(void)
{
    enum { SLOTS = 2 * PAGES * PAGE_FUNCTIONS };
    if (!table.slots && !(table.slots = arena_alloc(SLOTS * sizeof *table.slots)))
        return NULL;
    uint64_t hash = intern_hash(&key, sizeof key);
    uint32_t at = (uint32_t)(hash >> 32) % SLOTS;
    while (table.slots[at] && !is_of(table.slots[at], hash))
        at = (at + 1) % SLOTS;
    if (!table.slots[at])
        table.slots[at] = make_entry(hash);
    return table.slots[at];
}

uintptr_t python_address_of(uintptr_t code, struct python_place place)
{
    pthread_mutex_lock(&lock);
    memset(&key, 0, sizeof key);
    python_file_of(code, key.file);
    python_name_of(code, key.name);
    make_absolute(key.file);
    struct entry *entry = entry_of_key();
    if (!entry) { /* one function for all further ones */
        key = (struct key){"?", "?"};
        entry = entry_of_key();
        place = (struct python_place){0, 0};
    }
    uintptr_t begin = entry ? entry->function.begin : (uintptr_t)1 << 63;
    pthread_mutex_unlock(&lock);
    return begin | (uintptr_t)place.line << COLUMN_BITS | place.column;
}

struct python_function *python_function_of(uintptr_t address)
{
    uintptr_t number = (address & ~((uintptr_t)1 << 63)) >> ADDRESS_BITS;
    uint32_t page = (uint32_t)(number / PAGE_FUNCTIONS);
    if (!python_is_line(address) || page >= PAGES || !pages[page] || !pages[page][number % PAGE_FUNCTIONS])
        return NULL;
    return &pages[page][number % PAGE_FUNCTIONS]->function;
}
