#include "rank_view.h"

#include "../spool/definitions.h"

#include <string.h>

int rank_view_open(struct rank_view *view, const unsigned char *mapped, size_t bytes)
{
    const struct spool_file_header *header = (const struct spool_file_header *)(const void *)mapped;
    if (!mapped || memcmp(header->magic, SPOOL_MAGIC, sizeof header->magic) != 0) /* it is just beginning */
        return 0;
    *view = (struct rank_view){.data = mapped, .bytes = bytes, .header = header, .ns_per_tick = spool_ns_per_tick(header)};
    return 1;
}

const struct spool_chunk *rank_view_next(const struct rank_view *view, const struct spool_chunk *chunk)
{
    size_t at = chunk ? (size_t)((const unsigned char *)chunk - view->data) + chunk->bytes : SPOOL_HEADER_BYTES;
    if (at + sizeof *chunk > view->bytes)
        return NULL;
    const struct spool_chunk *next = (const struct spool_chunk *)(const void *)(view->data + at);
    int is_one = __atomic_load_n(&next->magic, __ATOMIC_ACQUIRE) == SPOOL_CHUNK_MAGIC;
    return is_one && next->bytes >= sizeof *next && next->bytes <= view->bytes - at ? next : NULL;
}

struct spool_cursor rank_view_records(const struct spool_chunk *chunk)
{
    uint64_t used = __atomic_load_n(&chunk->used, __ATOMIC_ACQUIRE), room = chunk->bytes - sizeof *chunk;
    const unsigned char *begin = (const unsigned char *)(chunk + 1);
    return (struct spool_cursor){begin, begin + (used < room ? used : room)};
}

/* Of sums, too, which may be longer than a run. */
int64_t rank_view_ns(const struct rank_view *view, uint64_t ticks)
{
    const unsigned __int128 most = (unsigned __int128)1 << 60;
    unsigned __int128 ns = (unsigned __int128)ticks * view->ns_per_tick >> 56;
    return (int64_t)(ns < most ? ns : most);
}

int64_t rank_view_moment_ns(const struct rank_view *view, uint64_t ticks)
{
    uint64_t first = view->header->first.ticks;
    return ticks > first ? rank_view_ns(view, ticks - first) : 0;
}
