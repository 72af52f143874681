#define _GNU_SOURCE
#include "path.h"

#include "../base/arena.h"
#include "../base/config.h"
#include "cells.h"
#include "frame_tree.h"
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

enum { PATH_BUCKETS = 1 << 16, PAGE_PATHS = 4096, PATH_PAGES = 4096 };
static struct path *paths[PATH_BUCKETS];
static struct path **pages[PATH_PAGES]; /* paths by id */
static uint32_t path_count;
static uint64_t path_bytes, most_path_bytes; /* of all, with what the spool has of them */
static pthread_mutex_t path_lock = PTHREAD_MUTEX_INITIALIZER;

static struct path **find_path(const struct path_found *found)
{
    uint64_t hash = 0;
    for (unsigned i = 0; i < found->frame_count; i++)
        hash = (hash ^ found->frames[i]) * 0x9e3779b97f4a7c15u;
    struct path **link = &paths[hash >> 48];
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
static const struct path *path_of(uint32_t id)
{
    uint32_t page = id / PAGE_PATHS;
    return page < PATH_PAGES && pages[page] ? pages[page][id % PAGE_PATHS] : NULL;
}

unsigned path_frames(uint32_t path, uintptr_t frames[PATH_MOST_FRAMES])
{
    unsigned count = 0;
    pthread_mutex_lock(&path_lock);
    const struct path *known = frame_tree_is_open() ? NULL : path_of(path);
    if (frame_tree_is_open())
        count = frame_tree_frames(path, frames);
    else if (known)
        memcpy(frames, known->frames, (count = known->frame_count) * sizeof frames[0]);
    pthread_mutex_unlock(&path_lock);
    return count;
}

int path_is_there(uint32_t path)
{
    pthread_mutex_lock(&path_lock);
    int is_there = !frame_tree_is_open() || frame_tree_has(path);
    pthread_mutex_unlock(&path_lock);
    return is_there;
}

unsigned paths_gone(void)
{
    return frame_tree_sweeps();
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
static uint32_t intern_all(struct thread *t, struct path_found *found)
{
    struct path **link = find_path(found);
    unsigned own = found->own ? found->own : 1;
    if (UNLIKELY(!*link && path_bytes > most_path_bytes && found->frame_count > own)) {
        found->frame_count = own;
        found->truncated = 1;
        found->is_cut = 1;
        link = find_path(found);
    }
    return *link ? (*link)->id : make_path(t, found, link);
}

/* Of LAPSCOPE_RECORD=job. Where the cells have most of the frames, their lighter half goes with its paths. */
static void make_room_for_job(struct thread *t)
{
    enum { ENOUGH = 1024 };
    if (frame_tree_sweep() >= ENOUGH)
        return;
    cells_fold(t->cells);
    frame_tree_sweep();
}

static uint32_t intern_for_job(struct thread *t, struct path_found *found)
{
    int is_new;
    uint32_t id = frame_tree_intern(found->frames, found->frame_count, &is_new);
    if (UNLIKELY(!id)) {
        make_room_for_job(t);
        id = frame_tree_intern(found->frames, found->frame_count, &is_new);
    }
    if (is_new)
        modules_define(t, found->frames, found->frame_count);
    found->is_cut = !id;
    return id;
}

uint32_t path_intern(struct thread *t, struct path_found *found)
{
    found->is_cut = 0;
    pthread_mutex_lock(&path_lock);
    uint32_t id = frame_tree_is_open() ? intern_for_job(t, found) : intern_all(t, found);
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
}
