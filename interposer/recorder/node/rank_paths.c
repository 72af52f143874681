#include "rank_paths.h"

void rank_paths_add_module(struct rank_paths *paths, const struct spool_view *view)
{
    const struct spool_module *module = &view->module;
    if (paths->module_count == RANK_MODULES)
        return;
    unsigned at = paths->module_count++;
    paths->modules[at].begin = module->begin;
    paths->modules[at].end = module->begin + module->size;
    paths->modules[at].bias = module->base;
    paths->modules[at].module = (struct node_module){view->payload, view->payload2, module->path_bytes, module->build_id_bytes, 0};
}

static uint32_t identity_at(const struct rank_paths *paths, unsigned at)
{
    return __atomic_load_n(&paths->entries[at].identity, __ATOMIC_ACQUIRE);
}

void rank_paths_add_frames(struct rank_paths *paths, const struct spool_chunk *chunk)
{
    size_t count = rank_view_entries(chunk, sizeof *paths->entries);
    paths->entries = (const struct spool_frame *)(chunk + 1);
    paths->entry_count = (unsigned)(count < RANK_FRAMES ? count : RANK_FRAMES);
    for (unsigned i = 0; i < paths->entry_count; i++) {
        uint32_t identity = identity_at(paths, i);
        uint16_t *bucket = &paths->buckets[identity % RANK_PATH_BUCKETS];
        if (!identity)
            continue;
        paths->next[i] = *bucket;
        *bucket = (uint16_t)(i + 1);
    }
}

static unsigned entry_of(const struct rank_paths *paths, uint32_t path)
{
    unsigned at = paths->buckets[path % RANK_PATH_BUCKETS];
    while (at && identity_at(paths, at - 1) != path)
        at = paths->next[at - 1];
    return at;
}

/* Addresses, innermost first. Returns how many; 0: the path is not there, or not as its name says. */
static unsigned read_path(const struct rank_paths *paths, uint32_t path, uint64_t addresses[SPOOL_FRAMES_DEPTH])
{
    unsigned count = 0, at = entry_of(paths, path);
    uint32_t identity = 0;
    for (; at && at <= paths->entry_count && count < SPOOL_FRAMES_DEPTH; at = paths->entries[at - 1].caller)
        addresses[count++] = paths->entries[at - 1].address;
    for (unsigned i = count; i-- > 0;)
        identity = spool_frame_identity(identity, addresses[i]);
    return count && identity == path ? count : 0;
}

/* The module of an address, which may have been loaded where another was: the last one counts. */
static int module_of(const struct rank_paths *paths, uint64_t address)
{
    for (unsigned i = paths->module_count; i-- > 0;)
        if (address >= paths->modules[i].begin && address < paths->modules[i].end)
            return (int)i;
    return -1;
}

static uint16_t frame_place(struct rank_paths *paths, struct node_frames *frames, uint16_t caller, uint64_t address)
{
    int module = module_of(paths, address);
    if (module < 0)
        return node_frame_place(frames, caller, 0, address);
    uint16_t *place = &paths->modules[module].place;
    *place = *place ? *place : node_module_place(frames, &paths->modules[module].module);
    return node_frame_place(frames, caller, *place, address - paths->modules[module].bias);
}

uint16_t rank_paths_place(struct rank_paths *paths, struct node_frames *frames, uint32_t path, int *is_full)
{
    uint64_t addresses[SPOOL_FRAMES_DEPTH];
    uint16_t place = 0;
    *is_full = 0;
    for (unsigned i = path ? read_path(paths, path, addresses) : 0; i-- > 0 && !*is_full;) {
        place = frame_place(paths, frames, place, addresses[i]);
        *is_full = !place;
    }
    return place;
}
