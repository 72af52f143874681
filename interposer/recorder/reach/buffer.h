/* A buffer of the application's as MPI was given it, and the words of it that can be watched. */
#ifndef LAPSCOPE_BUFFER_H
#define LAPSCOPE_BUFFER_H

#include "../base/mpi_api.h"

#include <stdint.h>

/* Why a buffer is not watched; the words are watch_left_out.reason of tables.def. */
enum left_out {
    LEFT_OUT_NOT,
    LEFT_OUT_SHARE, LEFT_OUT_SMALL, LEFT_OUT_BUSY, LEFT_OUT_BUDGET, LEFT_OUT_DATATYPE, LEFT_OUT_MEMORY, LEFT_OUT_SHARED,
    LEFT_OUT_THREAD, LEFT_OUT_PARTITIONED, LEFT_OUT_IN_PLACE, LEFT_OUT_COLLECTIVE, LEFT_OUT_UNSENT,
    LEFT_OUT_REASONS
};

const char *left_out_word(enum left_out reason);

/* As the clauses `sends` and `receives` of calls.def give it. */
struct given_buffer {
    const void *address;     /* NULL: not known */
    uint64_t count;
    MPI_Datatype type;
    enum left_out not;       /* why it cannot be looked at; LEFT_OUT_NOT: it can */
    int is_given;            /* 0: the call sends, or receives, nothing on this rank, or nothing that is watched */
};

/* Elements of `element_bytes` each (true extent), `stride` apart. Where they have no gaps, one element. */
struct buffer {
    uintptr_t begin;         /* first byte of data */
    uint64_t bytes;          /* up to the last byte of data */
    uint64_t elements, element_bytes, stride;
    unsigned width;          /* sparse: bytes that are data for certain at either end of an element */
    int sparse;
};

/* What is kept of a given buffer: the program may free the datatype while its request is under way. */
struct known_buffer {
    const void *address;     /* as given */
    uint64_t bytes;          /* of data; 0 where nothing is given, or it is not told */
    struct buffer buffer;
    enum left_out not;       /* as given */
    enum left_out why;       /* it cannot be watched; LEFT_OUT_NOT: `buffer` is filled */
    int is_given;
};

/* Asks MPI of the datatype. */
struct known_buffer buffer_known(const struct given_buffer *given);

struct word {
    uintptr_t at;
    unsigned bytes;          /* 8, 4, 2, 1; at is a multiple of it */
};

enum word_choice { WORD_FIRST, WORD_LAST, WORD_ANYWHERE };

/* A word of a buffer that holds nothing but its data; `random` says which, where it is anywhere. */
struct word buffer_word(const struct buffer *buffer, enum word_choice choice, uint64_t random);

static inline int buffer_holds(const struct buffer *buffer, uintptr_t address)
{
    return address - buffer->begin < buffer->bytes;
}

#endif
