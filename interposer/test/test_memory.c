/* What the kernel says of memory: whose it is, and what can be read of it. */
#define _GNU_SOURCE
#include "check.h"

#include "../recorder/reach/memory.h"

#include <stdlib.h>
#include <sys/mman.h>

enum { PAGE = 4096 };

static uintptr_t map(int protection, int flags, size_t pages)
{
    void *mapped = mmap(NULL, pages * PAGE, protection, flags | MAP_ANONYMOUS, -1, 0);
    CHECK(mapped != MAP_FAILED);
    return (uintptr_t)mapped;
}

static void tells_whose_memory_it_is(void)
{
    static uint64_t fixed[100];
    uint64_t local[100];
    void *heap = malloc(100000);
    CHECK_EQUAL(memory_of((uintptr_t)fixed, sizeof fixed), MEMORY_OWN);
    CHECK_EQUAL(memory_of((uintptr_t)local, sizeof local), MEMORY_OWN);
    CHECK_EQUAL(memory_of((uintptr_t)heap, 100000), MEMORY_OWN);
    CHECK_EQUAL(memory_of((uintptr_t)heap, 100000), MEMORY_OWN); /* remembered */
    CHECK_EQUAL(memory_of(map(PROT_READ | PROT_WRITE, MAP_SHARED, 2), 2 * PAGE), MEMORY_SHARED);
    CHECK_EQUAL(memory_of(map(PROT_NONE, MAP_PRIVATE, 1), PAGE), MEMORY_OTHER);
    CHECK_EQUAL(memory_of(map(PROT_READ, MAP_PRIVATE, 1), PAGE), MEMORY_OTHER);
    CHECK_EQUAL(memory_of(64, 8), MEMORY_OTHER);
    CHECK_EQUAL(memory_of(UINTPTR_MAX - 100, 8), MEMORY_OTHER);
    free(heap);
}

/* A buffer that begins in one mapping and ends in another is no better than the worse of them. */
static void asks_for_all_of_a_buffer(void)
{
    uintptr_t begin = map(PROT_READ | PROT_WRITE, MAP_PRIVATE, 4);
    CHECK_EQUAL(mprotect((void *)(begin + PAGE), PAGE, PROT_READ | PROT_WRITE | PROT_EXEC), 0); /* a mapping of its own */
    CHECK_EQUAL(memory_of(begin + 8, 3 * PAGE), MEMORY_OWN);
    CHECK_EQUAL(mprotect((void *)(begin + 3 * PAGE), PAGE, PROT_NONE), 0);
    CHECK_EQUAL(memory_of(begin, 4 * PAGE), MEMORY_OTHER);
    CHECK_EQUAL(munmap((void *)(begin + 2 * PAGE), PAGE), 0);
    CHECK_EQUAL(memory_of(begin, 2 * PAGE + 1), MEMORY_OTHER);
    CHECK_EQUAL(memory_of(begin, 2 * PAGE), MEMORY_OWN);
}

static void reads_what_is_mapped(void)
{
    static uint64_t words[3] = {5, 6, 7};
    uint64_t read[4] = {0}, page[PAGE / 8];
    uintptr_t places[4] = {(uintptr_t)&words[2], (uintptr_t)&words[0], 64, (uintptr_t)&words[1]};
    CHECK_EQUAL(memory_read(places, read, 4), 2);
    CHECK_EQUAL(read[0], 7);
    CHECK_EQUAL(read[1], 5);
    CHECK(memory_read_page((uintptr_t)words & ~(uintptr_t)(PAGE - 1), page));
    CHECK(!memory_read_page(0, page));
}

int main(void)
{
    tells_whose_memory_it_is();
    asks_for_all_of_a_buffer();
    reads_what_is_mapped();
    return check_summary();
}
