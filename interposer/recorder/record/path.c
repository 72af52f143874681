#define _GNU_SOURCE
#include "path.h"

#include "../base/arena.h"
#include "../base/config.h"
#include "modules.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

struct path {
    struct path *next;
    uint32_t id;
    uint32_t frame_count;
    uintptr_t frames[];
};

enum { PATH_BUCKETS = 1 << 16, PAGE_PATHS = 4096, PATH_PAGES = 4096, MOST_BYTES_OF_JOB = 256 << 10 };
static struct path *paths[PATH_BUCKETS];
static struct path **pages[PATH_PAGES]; /* paths by id */
static uint32_t path_count;
static uint64_t path_bytes, most_path_bytes; /* of all, with what the spool has of them */
static unsigned bucket_shift = 48;           /* few buckets touch little memory */
static pthread_mutex_t path_lock = PTHREAD_MUTEX_INITIALIZER;

static struct path **find_path(const struct path_found *found)
{
    uint64_t hash = 0;
    for (unsigned i = 0; i < found->frame_count; i++)
        hash = (hash ^ found->frames[i]) * 0x9e3779b97f4a7c15u;
    struct path **link = &paths[hash >> bucket_shift];
    while (*link && ((*link)->frame_count != found->frame_count ||
                     memcmp((*link)->frames, found->frames, found->frame_count * sizeof found->frames[0]) != 0))
        link = &(*link)->next;
    return link;
}

/* Beyond what the pages hold, a path is only not found by its id. */
static void number_path(struct path *path)
{
    uint32_t page = path->id / PAGE_PATHS;
    if (page < PATH_PAGES && !pages[page])
        pages[page] = arena_alloc(PAGE_PATHS * sizeof *pages[page]);
    if (page < PATH_PAGES && pages[page])
        pages[page][path->id % PAGE_PATHS] = path;
}

/* Whoever knows an id has it from path_intern, which has numbered the path before. */
unsigned path_frames(uint32_t path, const uintptr_t **frames)
{
    uint32_t page = path / PAGE_PATHS;
    const struct path *known = page < PATH_PAGES && pages[page] ? pages[page][path % PAGE_PATHS] : NULL;
    *frames = known ? known->frames : NULL;
    return known ? known->frame_count : 0;
}

static uint32_t make_path(struct thread *t, const struct path_found *found, struct path **link)
{
    size_t frame_bytes = found->frame_count * sizeof found->frames[0];
    if (spool_definition_detail() > SPOOL_DEFINE_FEW) /* it stays without one */
        return 0;
    struct path *path = arena_alloc(sizeof *path + frame_bytes);
    if (!path)
        return 0;
    path->id = path_count + 1;
    path->frame_count = found->frame_count;
    memcpy(path->frames, found->frames, frame_bytes);
    modules_define(t, found->frames, found->frame_count);
    struct spool_path head = {path->id, (uint16_t)found->frame_count, (uint8_t)found->truncated};
    if (!spool_define(&t->stream, SPOOL_PATH, &head, sizeof head, found->frames, frame_bytes, NULL, 0))
        return 0;
    path_count++;
    path_bytes += sizeof *path + sizeof head + 2 * frame_bytes;
    number_path(path);
    *link = path;
    return path->id;
}

/* Beyond LAPSCOPE_CALLPATH_MB new paths are those of their innermost frame, of Python up to the innermost line. */
uint32_t path_intern(struct thread *t, struct path_found *found)
{
    found->is_cut = 0;
    pthread_mutex_lock(&path_lock);
    struct path **link = find_path(found);
    unsigned own = found->own ? found->own : 1;
    if (UNLIKELY(!*link && path_bytes > most_path_bytes && found->frame_count > own)) {
        found->frame_count = own;
        found->truncated = 1;
        found->is_cut = 1;
        link = find_path(found);
    }
    uint32_t id = *link ? (*link)->id : make_path(t, found, link);
    pthread_mutex_unlock(&path_lock);
    return id;
}

uint32_t path_define(struct thread *t, const uintptr_t *frames, unsigned count)
{
    struct path_found found = {.frame_count = count};
    int saved_errno = errno;
    memcpy(found.frames, frames, count * sizeof frames[0]);
    uint32_t path = path_intern(t, &found);
    errno = saved_errno;
    return path;
}

void path_configure(void)
{
    most_path_bytes = (uint64_t)config.callpath_mb << 20;
    if (config.record == CONFIG_RECORD_JOB) {
        most_path_bytes = MOST_BYTES_OF_JOB;
        bucket_shift = 64 - 10;
    }
}
