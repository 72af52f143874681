#include "copy.h"

#include "../base/arena.h"
#include "memory.h"

enum { MOST_BUFFERS = 4096, PAGE_BYTES = 4096, LEAST_DIFFERENT_BYTES = 4, MISSES = 3 };
enum { STACK_BELOW = 1 << 20, STACK_ABOVE = 4096 };

/* A loop that gathers a column has moved its pointer on by a row when it writes. */
enum { NEAR_BYTES = 4096 };

static struct copied_buffer *buffer_entry(struct copies *copies, uintptr_t begin, const struct operation *operation,
                                          int make)
{
    struct copied_buffer key = {.key = {begin, operation}};
    uint64_t hash = intern_hash(&key.key, sizeof key.key);
    void **slot = intern_find(&copies->buffers, hash, &key.key, sizeof key.key);
    /* programs that allocate their buffers anew have ever more of them, and come back to none */
    if (slot && !*slot && make && copies->buffers.count < MOST_BUFFERS) {
        struct copied_buffer *made = arena_alloc(sizeof *made);
        if (!made)
            return NULL;
        made->hash = hash;
        made->key = key.key;
        *slot = made;
        copies->buffers.count++;
    }
    return slot ? *slot : NULL;
}

struct copy *copy_of(struct copies *copies, const struct buffer *buffer, const struct operation *operation, uint64_t random)
{
    struct copied_buffer *known = buffer_entry(copies, buffer->begin, operation, 0);
    if (!known || !known->count || random & 1)
        return NULL;
    struct copy *copy = &known->copies[(random >> 1) % known->count];
    return buffer_holds(buffer, copy->word.at) && copy->missed < copy->seen + MISSES ? copy : NULL;
}

/* Contents that other words have by chance, too: 0, 1.0, small integers. */
static int is_telling(uint64_t value)
{
    unsigned different = 0;
    uint64_t seen[4] = {0};
    for (unsigned i = 0; i < 8; i++) {
        unsigned byte = (unsigned)(value >> 8 * i & 255);
        different += !(seen[byte >> 6] >> (byte & 63) & 1);
        seen[byte >> 6] |= (uint64_t)1 << (byte & 63);
    }
    return different >= LEAST_DIFFERENT_BYTES;
}

/* Where eight bytes equal to `value` are found among places; 0: nowhere. Places that are not mapped are skipped. */
static uintptr_t search(const uintptr_t *places, unsigned count, uint64_t value)
{
    uint64_t words[64];
    for (unsigned from = 0; from < count;) {
        unsigned left = count - from, asked = left < 64 ? left : 64, got = memory_read(places + from, words, asked);
        for (unsigned i = 0; i < got; i++)
            if (words[i] == value)
                return places[from + i];
        from += got < asked ? got + 1 : got;
    }
    return 0;
}

/* A place is none in the buffer itself, nor where functions spill registers, nor in frames of ours. */
static int is_place_of_copy(const struct buffer *buffer, uintptr_t stack_pointer, uintptr_t place)
{
    return place >= 4096 && place % 8 == 0 && !buffer_holds(buffer, place) &&
           place - (stack_pointer - STACK_BELOW) >= STACK_BELOW + STACK_ABOVE;
}

/* The word's distance from one register added to another: source[i] and destination[i] of a loop. */
static uintptr_t find_by_distance(const struct buffer *buffer, struct word word, const struct watchpoint_hit *hit,
                                  uint64_t value)
{
    uintptr_t places[HIT_REGISTERS * HIT_REGISTERS];
    unsigned count = 0;
    for (unsigned i = 1; i < hit->registers; i++)
        for (unsigned j = 1; j < hit->registers; j++) {
            uintptr_t place = hit->value[j] + (word.at - hit->value[i]);
            int is_near = word.at - hit->value[i] + 65536 < buffer->bytes + 131072;
            if (i != j && is_near && is_place_of_copy(buffer, hit->value[0], place))
                places[count++] = place;
        }
    return search(places, count, value);
}

/* Of one page the place that is nearest to a pointer. */
static void search_page(const struct buffer *buffer, uintptr_t stack_pointer, uintptr_t page, uintptr_t pointer, uint64_t value,
                        uintptr_t *nearest, uint64_t *distance)
{
    uint64_t words[PAGE_BYTES / 8];
    if (!memory_read_page(page, words))
        return;
    for (unsigned i = 0; i < PAGE_BYTES / 8; i++) {
        uintptr_t place = page + 8 * i;
        uint64_t away = place > pointer ? place - pointer : pointer - place;
        if (words[i] == value && away <= NEAR_BYTES && away < *distance && is_place_of_copy(buffer, stack_pointer, place)) {
            *nearest = place;
            *distance = away;
        }
    }
}

/* What stands near a register: a pointer that the loop moves on. */
static uintptr_t find_near(const struct buffer *buffer, const struct watchpoint_hit *hit, uint64_t value)
{
    uintptr_t nearest = 0;
    uint64_t distance = UINT64_MAX;
    for (unsigned i = 1; i < hit->registers; i++) {
        uintptr_t pointer = hit->value[i], page = pointer & ~(uintptr_t)(PAGE_BYTES - 1);
        if (pointer < 2 * PAGE_BYTES || pointer >> 47)
            continue;
        for (int step = -1; step <= 1; step++)
            search_page(buffer, hit->value[0], page + (uintptr_t)(step * PAGE_BYTES), pointer, value, &nearest, &distance);
    }
    return nearest;
}

void copy_look(struct copies *copies, const struct buffer *buffer, const struct operation *operation, struct word word,
               const struct watchpoint_hit *hit, uint32_t path)
{
    uint64_t value;
    if (!hit->registers || word.bytes != 8 || memory_read(&word.at, &value, 1) != 1 || !is_telling(value))
        return;
    struct copied_buffer *known = buffer_entry(copies, buffer->begin, operation, 1);
    if (!known || known->count == COPIES_OF_BUFFER || (!known->count && known->trials == COPY_TRIALS))
        return;
    uintptr_t place = find_by_distance(buffer, word, hit, value);
    if (!place)
        place = find_near(buffer, hit, value);
    if (!place) {
        known->trials++;
        return;
    }
    for (unsigned i = 0; i < known->count; i++)
        if (known->copies[i].word.at == word.at)
            return;
    known->copies[known->count++] = (struct copy){word, place, hit->address, path, 0, 0};
}
