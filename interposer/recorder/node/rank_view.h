/* The spool of one rank as it lies in the meeting's memory, while the rank may write to it. */
#ifndef LAPSCOPE_RANK_VIEW_H
#define LAPSCOPE_RANK_VIEW_H

#include "../spool/reader.h"

struct rank_view {
    const unsigned char *data;
    size_t bytes;
    const struct spool_file_header *header;
    uint64_t ns_per_tick;    /* in units of 2^-56 */
};

/* Of what is mapped there, or NULL. Returns 0 when nothing has been recorded in it. */
int rank_view_open(struct rank_view *view, const unsigned char *mapped, size_t bytes);

/* The chunk behind another; NULL: the first, or there is none. */
const struct spool_chunk *rank_view_next(const struct rank_view *view, const struct spool_chunk *chunk);

/* Its records, or its entries. */
struct spool_cursor rank_view_records(const struct spool_chunk *chunk);
static inline size_t rank_view_entries(const struct spool_chunk *chunk, size_t entry_bytes)
{
    return (chunk->bytes - sizeof *chunk) / entry_bytes;
}

int64_t rank_view_ns(const struct rank_view *view, uint64_t ticks);

/* Since the beginning of the recording; 0 of what is not known. */
int64_t rank_view_moment_ns(const struct rank_view *view, uint64_t ticks);

#endif
