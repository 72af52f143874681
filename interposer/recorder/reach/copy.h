/*
 * Copies, one step further. Of an instruction that touched a watched word, the registers are known. Where one of them, or the
 * word's distance from one added to another, leads to the same eight bytes, the instruction copied the word there (or from
 * there). Only contents that are not found by chance count. Buffers come again, and so do the places to which they are copied:
 * from the next time on such a place can be watched itself. It counts only where the copy is then seen again: two places may have
 * the same contents otherwise, too, as in runs whose ranks compute the same.
 */
#ifndef LAPSCOPE_COPY_H
#define LAPSCOPE_COPY_H

#include "../base/intern.h"
#include "buffer.h"
#include "watchpoint.h"

enum { COPIES_OF_BUFFER = 8, COPY_TRIALS = 4 };

struct copy {
    struct word word;             /* of the buffer */
    uintptr_t place;              /* where it was copied to, or from; 8 bytes, aligned */
    uintptr_t instruction;        /* the one behind the copying one */
    uint32_t path;                /* its id in the spool */
    unsigned seen, missed;        /* how often the place was then seen to be copied to, or from, and how often not */
};

struct operation;

/* What is known of copies of one buffer, as one operation sends or receives it: others may use the same buffer for what they copy
 * elsewhere. */
struct copied_buffer {
    uint64_t hash;                /* see intern.h */
    struct {
        uintptr_t begin;
        const struct operation *operation;
    } key;
    unsigned count, trials;       /* trials that found none, in a row */
    struct copy copies[COPIES_OF_BUFFER];
};

struct copies {
    struct intern_table buffers;
};

/* One of a buffer's copies by `random`; NULL when none is known, or it is the buffer's own turn. */
struct copy *copy_of(struct copies *copies, const struct buffer *buffer, const struct operation *operation,
                     uint64_t random);

/* A word of a buffer was touched: looks for its copy. `path`: of the touching instruction in the spool. Returns at once when enough is
 * known, or has been tried. */
void copy_look(struct copies *copies, const struct buffer *buffer, const struct operation *operation, struct word word,
               const struct watchpoint_hit *hit, uint32_t path);

#endif
