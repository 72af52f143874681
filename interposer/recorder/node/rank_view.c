#define _GNU_SOURCE
#include "rank_view.h"

#include "../spool/definitions.h"

#include <string.h>
#include <sys/mman.h>

int rank_view_open(struct rank_view *view, const struct spool_memory *room)
{
    void *mapped = room->fd < 0 ? MAP_FAILED : mmap(NULL, room->bytes, PROT_READ, MAP_SHARED, room->fd, (off_t)room->offset);
    if (mapped == MAP_FAILED)
        return 0;
    *view = (struct rank_view){.data = mapped, .bytes = room->bytes, .header = mapped};
    if (memcmp(view->header->magic, SPOOL_MAGIC, sizeof view->header->magic) != 0) { /* it is just beginning */
        rank_view_close(view);
        return 0;
    }
    view->ns_per_tick = spool_ns_per_tick(view->header);
    return 1;
}

void rank_view_close(struct rank_view *view)
{
    munmap((void *)(uintptr_t)view->data, view->bytes);
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
