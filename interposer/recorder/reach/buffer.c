#include "buffer.h"

enum { WIDEST = 8 };

/* No program's address is so large: an absolute address was meant, and taken from what stands for MPI_BOTTOM in Fortran. */
#define FARTHEST ((uint64_t)1 << 47)

const char *left_out_word(enum left_out reason)
{
    static const char *const words[LEFT_OUT_REASONS] = {
        [LEFT_OUT_SHARE] = "share",       [LEFT_OUT_SMALL] = "small",       [LEFT_OUT_BUSY] = "busy",
        [LEFT_OUT_BUDGET] = "budget",     [LEFT_OUT_DATATYPE] = "datatype", [LEFT_OUT_MEMORY] = "memory",
        [LEFT_OUT_SHARED] = "shared",     [LEFT_OUT_THREAD] = "thread",     [LEFT_OUT_PARTITIONED] = "partitioned",
        [LEFT_OUT_IN_PLACE] = "in_place", [LEFT_OUT_COLLECTIVE] = "collective", [LEFT_OUT_UNSENT] = "unsent"};
    return words[reason];
}

/* The widest word that divides a size. */
static unsigned widest(uint64_t size)
{
    unsigned bytes = WIDEST;
    while (size % bytes)
        bytes /= 2;
    return bytes;
}

static enum left_out buffer_of(const struct given_buffer *given, struct buffer *buffer)
{
    MPI_Count lower, extent, true_lower, true_extent;
    uint64_t size = bytes_of(1, given->type), count = given->count;
    if (!count || !size)
        return LEFT_OUT_SMALL;
    if (mpi.Type_get_extent_x(given->type, &lower, &extent) != MPI_SUCCESS ||
        mpi.Type_get_true_extent_x(given->type, &true_lower, &true_extent) != MPI_SUCCESS)
        return LEFT_OUT_DATATYPE;
    uint64_t begin = (uint64_t)(uintptr_t)given->address + (uint64_t)true_lower;
    if (extent <= 0 || true_extent <= 0 || (uint64_t)extent > FARTHEST / count || begin >= FARTHEST || begin < WIDEST)
        return LEFT_OUT_DATATYPE;
    buffer->begin = (uintptr_t)begin;
    buffer->bytes = (count - 1) * (uint64_t)extent + (uint64_t)true_extent;
    buffer->sparse = (uint64_t)true_extent != size || ((uint64_t)extent != size && count > 1);
    buffer->elements = buffer->sparse ? count : 1;
    buffer->element_bytes = buffer->sparse ? (uint64_t)true_extent : buffer->bytes;
    buffer->stride = (uint64_t)extent;
    buffer->width = widest(size);
    return LEFT_OUT_NOT;
}

struct known_buffer buffer_known(const struct given_buffer *given)
{
    enum left_out why = given->not ? given->not : LEFT_OUT_SMALL;
    struct known_buffer known = {.address = given->address, .not = given->not, .why = why, .is_given = given->is_given};
    if (given->is_given && given->count && !given->not) {
        known.bytes = bytes_of(given->count, given->type);
        known.why = buffer_of(given, &known.buffer);
    }
    return known;
}

/* The widest word that begins at an address, or ends at it, within `most` bytes. */
static unsigned fitting(uintptr_t address, uint64_t most)
{
    unsigned bytes = WIDEST;
    while (bytes > 1 && (address % bytes || bytes > most))
        bytes /= 2;
    return bytes;
}

/* What is data for certain of an element with gaps is its first and its last byte, and as many as divide its size. */
static struct word sparse_word(const struct buffer *buffer, enum word_choice choice, uint64_t random)
{
    uint64_t element = choice == WORD_FIRST  ? 0
                       : choice == WORD_LAST ? buffer->elements - 1
                                             : (random >> 1) % buffer->elements;
    uintptr_t begin = buffer->begin + element * buffer->stride, end = begin + buffer->element_bytes;
    int at_end = choice == WORD_LAST || (choice == WORD_ANYWHERE && random & 1);
    unsigned bytes = fitting(at_end ? end : begin, buffer->width);
    return (struct word){at_end ? end - bytes : begin, bytes};
}

struct word buffer_word(const struct buffer *buffer, enum word_choice choice, uint64_t random)
{
    if (buffer->sparse)
        return sparse_word(buffer, choice, random);
    uintptr_t end = buffer->begin + buffer->bytes;
    uintptr_t first = (buffer->begin + WIDEST - 1) & ~(uintptr_t)(WIDEST - 1), behind = end & ~(uintptr_t)(WIDEST - 1);
    if (first >= behind) { /* too small for a whole one */
        uintptr_t at = choice == WORD_FIRST ? buffer->begin : end - fitting(end, buffer->bytes);
        return (struct word){at, fitting(at, end - at)};
    }
    uint64_t words = (behind - first) / WIDEST;
    uint64_t number = choice == WORD_FIRST ? 0 : choice == WORD_LAST ? words - 1 : random % words;
    return (struct word){first + number * WIDEST, WIDEST};
}
