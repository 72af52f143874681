#define _GNU_SOURCE
#include "node_sums.h"

#include "../base/call.h"
#include "../base/intern.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { VIEW_PATHS = 8192, VIEW_MODULES = 1024 };

/* A rank's definitions by id, as far as they are needed. */
struct reading {
    struct node_sums *sums;
    const struct rank_view *view;
    struct node_rank *rank;
    unsigned seat;
    uint64_t bounds_ns;      /* what may have been folded away */
    struct {
        uint64_t begin, end, bias;
        uint16_t place;      /* plus 1; 0: not looked up yet */
        const unsigned char *path, *build_id;
        uint16_t path_bytes, build_id_bytes;
    } modules[VIEW_MODULES];
    unsigned module_count;
    struct {
        const unsigned char *frames;
        uint16_t count, place; /* of the innermost frame, plus 1; 0: not looked up yet */
    } paths[VIEW_PATHS];
};

static size_t sums_bytes(unsigned ranks)
{
    return sizeof(struct node_sums) + ranks * sizeof(struct node_rank);
}

static void *map(size_t bytes)
{
    void *mapped = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return mapped == MAP_FAILED ? NULL : mapped;
}

struct node_sums *node_sums_create(unsigned ranks)
{
    return map(sums_bytes(ranks));
}

void node_sums_destroy(struct node_sums *sums, unsigned ranks)
{
    munmap(sums, sums_bytes(ranks));
}

/* As CallName::category of crates/data says. */
static enum node_time time_of(const struct call_facts *call)
{
    int blocks = strcmp(call->role, "BLOCK") == 0;
    if (strcmp(call->role, "POST") == 0)
        return NODE_POSTING;
    if (strcmp(call->role, "COMPLETE") == 0)
        return NODE_COMPLETING;
    if (strcmp(call->role, "BOUND") == 0)
        return NODE_TIMES;
    if (strcmp(call->family, "WINDOW") == 0)
        return NODE_RMA;
    if (strcmp(call->family, "FILE") == 0)
        return NODE_IO;
    if (blocks && (strcmp(call->family, "COLLECTIVE") == 0 || strcmp(call->family, "NEIGHBORHOOD") == 0))
        return NODE_COLLECTIVE;
    if ((blocks || strcmp(call->role, "PROBE") == 0) && strcmp(call->family, "POINT_TO_POINT") == 0)
        return NODE_BLOCKING;
    static const char *const together[] = {"MPI_Comm_dup", "MPI_Comm_idup", "MPI_Comm_split", "MPI_Cart_", "MPI_Graph_create",
                                           "MPI_Dist_graph_create"};
    if (strcmp(call->role, "MANAGE") != 0 || strcmp(call->family, "COMMUNICATOR") != 0)
        return NODE_OTHER;
    for (size_t i = 0; i < sizeof together / sizeof together[0]; i++)
        if (strncmp(call->blocking, together[i], strlen(together[i])) == 0)
            return NODE_COLLECTIVE;
    return strcmp(call->blocking, "MPI_Comm_create") == 0 || strcmp(call->blocking, "MPI_Intercomm_merge") == 0 ? NODE_COLLECTIVE
                                                                                                          : NODE_OTHER;
}

enum node_time node_time_of(unsigned call)
{
    return call < CALL_COUNT ? time_of(&call_facts[call]) : NODE_TIMES;
}

/* --- call paths --------------------------------------------------------------------------------------------------- */

static uint16_t module_place(struct reading *r, unsigned at)
{
    struct node_sums *sums = r->sums;
    if (r->modules[at].place)
        return r->modules[at].place;
    for (unsigned i = 0; i < sums->module_count; i++) {
        const struct node_module *known = &sums->modules[i];
        if (known->path_bytes == r->modules[at].path_bytes && known->build_id_bytes == r->modules[at].build_id_bytes &&
            !memcmp(known->path, r->modules[at].path, known->path_bytes) &&
            !memcmp(known->build_id, r->modules[at].build_id, known->build_id_bytes))
            return r->modules[at].place = (uint16_t)(i + 1);
    }
    if (sums->module_count == NODE_MODULES)
        return 0;
    sums->modules[sums->module_count] = (struct node_module){r->modules[at].path, r->modules[at].build_id, r->modules[at].path_bytes,
                                                             r->modules[at].build_id_bytes, 0};
    return r->modules[at].place = (uint16_t)++sums->module_count;
}

/* The place of a frame, plus 1; that of the caller where there is no room for more. */
static uint16_t frame_place(struct node_sums *sums, uint16_t caller, uint16_t module, uint64_t address)
{
    uint64_t key[] = {address, (uint64_t)caller << 16 | module};
    uint16_t *bucket = &sums->frame_buckets[intern_hash(key, sizeof key) >> 1 & (NODE_BUCKETS - 1)];
    for (uint16_t at = *bucket; at; at = sums->frames[at - 1].next) {
        const struct node_frame *frame = &sums->frames[at - 1];
        if (frame->address == address && frame->caller == caller && frame->module == module)
            return at;
    }
    if (sums->frame_count == NODE_FRAMES)
        return caller;
    sums->frames[sums->frame_count] = (struct node_frame){address, caller, module, *bucket, 0};
    return *bucket = (uint16_t)++sums->frame_count;
}

/* The module of an address, which may have been loaded where another was: the last one counts. */
static int module_of(const struct reading *r, uint64_t address)
{
    for (unsigned i = r->module_count; i-- > 0;)
        if (address >= r->modules[i].begin && address < r->modules[i].end)
            return (int)i;
    return -1;
}

static uint16_t path_place(struct reading *r, uint32_t path)
{
    if (path == 0 || path >= VIEW_PATHS || !r->paths[path].frames)
        return 0;
    if (r->paths[path].place)
        return r->paths[path].place;
    unsigned count = r->paths[path].count < NODE_DEPTH ? r->paths[path].count : NODE_DEPTH;
    uint16_t place = 0;
    for (unsigned i = count; i-- > 0;) {
        uint64_t address;
        memcpy(&address, r->paths[path].frames + i * sizeof address, sizeof address);
        int module = module_of(r, address);
        place = frame_place(r->sums, place, module < 0 ? 0 : module_place(r, (unsigned)module),
                            address - (module < 0 ? 0 : r->modules[module].bias));
    }
    return r->paths[path].place = place;
}

/* --- sites -------------------------------------------------------------------------------------------------------- */

static uint64_t time_in(const struct spool_cell *cell)
{
    return spool_sum(cell->sums.inside_ticks, cell->sums.completion_ticks);
}

static uint16_t *site_bucket(struct node_sums *sums, const struct spool_tally *key)
{
    uint64_t word;
    memcpy(&word, key, sizeof word);
    return &sums->site_buckets[intern_hash(&word, sizeof word) >> 1 & (NODE_BUCKETS - 1)];
}

/* The site of a cell, whose first eight bytes are its key; NULL when there is no room. */
static struct node_site *site_of(struct node_sums *sums, const struct spool_cell *cell)
{
    uint16_t *bucket = site_bucket(sums, &cell->sums);
    for (uint16_t at = *bucket; at; at = sums->sites[at - 1].next)
        if (!memcmp(&sums->sites[at - 1].cell, cell, 8))
            return &sums->sites[at - 1];
    if (sums->site_count == NODE_SITES)
        return NULL;
    struct node_site *site = &sums->sites[sums->site_count];
    memcpy(&site->cell, cell, 8);
    site->next = *bucket;
    *bucket = (uint16_t)++sums->site_count;
    return site;
}

static struct spool_cell rest_of(const struct spool_cell *cell)
{
    struct spool_cell rest = *cell;
    rest.sums.size_class = SPOOL_CELL_REST;
    rest.sums.path = 0;
    rest.error_ticks = 0;
    return rest;
}

static void add_site(struct reading *r, struct spool_cell *cell)
{
    struct node_site *site = site_of(r->sums, cell);
    if (!site) {
        *cell = rest_of(cell);
        site = site_of(r->sums, cell);
    }
    if (!site)
        return; /* every function has one, so that there is room */
    spool_cell_add(&site->cell, cell);
    if (site->last_seat != r->seat + 1) {
        site->last_seat = r->seat + 1;
        site->processes++;
        site->bounds_ns += r->bounds_ns;
    }
    if (time_in(cell) >= site->most_ns) {
        site->most_ns = time_in(cell);
        site->most_rank = (uint32_t)r->rank->world_rank;
    }
}

/* Ticks become nanoseconds. */
static void convert(const struct rank_view *view, struct spool_cell *cell)
{
    uint64_t *const times[] = {&cell->sums.inside_ticks, &cell->sums.completion_ticks, &cell->sums.mpi_ticks,
                               &cell->sums.window_ticks, &cell->overlappable_ticks,    &cell->error_ticks};
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++)
        *times[i] = (uint64_t)rank_view_ns(view, *times[i]);
}

static void add_to_rank(struct node_rank *rank, const struct spool_cell *cell)
{
    const struct spool_tally *sums = &cell->sums;
    const struct call_facts *call = &call_facts[sums->call_plus_1 - 1];
    enum node_time time = node_time_of(sums->call_plus_1 - 1u);
    if (sums->reason == SPOOL_TALLY_UNSUCCESSFUL_TEST) {
        rank->unsuccessful_tests += sums->count;
        rank->times_ns[NODE_UNSUCCESSFUL_TEST] += sums->inside_ticks;
        return;
    }
    if (time == NODE_TIMES)
        return;
    rank->times_ns[time] += sums->inside_ticks;
    if (time == NODE_POSTING) {
        rank->requests += sums->count;
        rank->overlappable_ns += cell->overlappable_ticks;
    }
    if ((time != NODE_POSTING && time != NODE_BLOCKING) || !call->counted)
        return;
    if (strcmp(call->kind, "send") == 0)
        rank->sent_bytes += sums->bytes;
    else if (strcmp(call->kind, "recv") == 0)
        rank->received_bytes += sums->bytes;
}

static void read_cell(struct reading *r, const struct spool_cell *at)
{
    struct spool_cell cell = *at; /* the rank may go on meanwhile */
    if (!cell.sums.call_plus_1 || cell.sums.call_plus_1 > CALL_COUNT || !cell.sums.count)
        return;
    convert(r->view, &cell);
    add_to_rank(r->rank, &cell);
    if (node_time_of(cell.sums.call_plus_1 - 1u) == NODE_TIMES)
        return;
    cell.sums.path = path_place(r, cell.sums.path);
    add_site(r, &cell);
}

static void read_cells(struct reading *r, const struct spool_chunk *chunk)
{
    const struct spool_cell *cells = (const struct spool_cell *)(chunk + 1);
    r->bounds_ns = (uint64_t)rank_view_ns(r->view, chunk->base);
    r->sums->bounds_ns += r->bounds_ns;
    for (size_t i = 0; i < rank_view_entries(chunk, sizeof *cells); i++)
        read_cell(r, &cells[i]);
}

/* --- the rest of a spool ------------------------------------------------------------------------------------------ */

static int is_key(const struct spool_view *view, const char *key)
{
    return view->meta.key_bytes == strlen(key) && !memcmp(view->payload, key, view->meta.key_bytes);
}

static void value_of(const struct spool_view *view, char *text, size_t bytes)
{
    snprintf(text, bytes, "%.*s", (int)view->meta.value_bytes, (const char *)view->payload2);
}

/* The fields of a value with tabs between them, one behind the other; empty behind the last. */
static char *next_field(char **rest)
{
    char *field = *rest ? *rest : "";
    char *tab = *rest ? strchr(*rest, '\t') : NULL;
    if (tab)
        *tab = '\0';
    *rest = tab ? tab + 1 : NULL;
    return field;
}

static void read_injector(struct reading *r, char *rest)
{
    enum { BEFORE_SPENT = 5 };
    struct node_injection *injection = &r->sums->injection;
    const char *mode = next_field(&rest), *problem = next_field(&rest);
    for (int i = 0; i < BEFORE_SPENT; i++)
        next_field(&rest);
    injection->processes++;
    snprintf(injection->mode, sizeof injection->mode, "%.15s", mode);
    if (*problem)
        snprintf(injection->problem, sizeof injection->problem, "%.255s", problem);
    injection->spent_ns += strtoull(next_field(&rest), NULL, 10);
}

static void read_meta(struct reading *r, const struct spool_view *view)
{
    char text[2048], *rest = text;
    value_of(view, text, sizeof text);
    if (is_key(view, "processor"))
        for (size_t i = 0; i < sizeof r->rank->processor / sizeof r->rank->processor[0]; i++)
            r->rank->processor[i] = strtoll(next_field(&rest), NULL, 10);
    else if (is_key(view, "injector"))
        read_injector(r, text);
    else if (is_key(view, "auto") && view->meta.value_bytes < sizeof r->sums->injection.automatic)
        snprintf(r->sums->injection.automatic, sizeof r->sums->injection.automatic, "%.1023s", text);
}

static void read_definition(struct reading *r, const struct spool_view *view)
{
    if (view->type == SPOOL_META)
        read_meta(r, view);
    if (view->type == SPOOL_MODULE && r->module_count < VIEW_MODULES) {
        const struct spool_module *module = &view->module;
        unsigned at = r->module_count++;
        r->modules[at].begin = module->begin;
        r->modules[at].end = module->begin + module->size;
        r->modules[at].bias = module->base;
        r->modules[at].path = view->payload;
        r->modules[at].path_bytes = module->path_bytes;
        r->modules[at].build_id = view->payload2;
        r->modules[at].build_id_bytes = module->build_id_bytes;
    }
    if (view->type == SPOOL_PATH && view->path.id < VIEW_PATHS) {
        r->paths[view->path.id].frames = view->payload;
        r->paths[view->path.id].count = view->path.frames;
    }
}

static void read_stream(struct reading *r, const struct spool_chunk *chunk)
{
    struct spool_cursor cursor = rank_view_records(chunk);
    struct spool_view view;
    while (spool_next_definition(&cursor, &view))
        read_definition(r, &view);
}

static void read_state(struct reading *r, const struct spool_chunk *chunk)
{
    const struct spool_thread_state *state = (const struct spool_thread_state *)(chunk + 1);
    if (!chunk->has_state)
        return;
    r->rank->threads++;
    r->rank->calls += state->calls;
}

static void read_injections(struct reading *r, const struct spool_chunk *chunk)
{
    const struct spool_injection *entries = (const struct spool_injection *)(chunk + 1);
    struct node_injection *into = &r->sums->injection;
    for (size_t i = 0; i < rank_view_entries(chunk, sizeof *entries) && entries[i].call_plus_1; i++) {
        if (entries[i].reason != SPOOL_TALLY_INJECTION)
            continue;
        into->requests += entries[i].requests;
        into->tests += entries[i].tests;
        into->found += entries[i].found;
        into->interrupts += entries[i].interrupts;
        into->test_ns += (uint64_t)rank_view_ns(r->view, entries[i].test_ticks);
        into->idle_ns += (uint64_t)rank_view_ns(r->view, entries[i].idle_ticks);
    }
}

static void read_header(struct node_rank *rank, const struct rank_view *view)
{
    const struct spool_file_header *header = view->header;
    uint64_t last = header->latest_index ? header->latest[header->latest_index & 1].ticks : header->init_end;
    *rank = (struct node_rank){.began_unix_ns = header->epoch_unix_ns,
                               .init_end_ns = rank_view_moment_ns(view, header->init_end),
                               .end_ns = rank_view_moment_ns(view, header->finalize_begin ? header->finalize_begin : last),
                               .pid = header->pid,
                               .life = header->life,
                               .world = header->world,
                               .world_rank = header->rank,
                               .world_size = header->world_size,
                               .thread_level = header->thread_level,
                               .end = header->end == SPOOL_OPEN && header->finalize_begin ? SPOOL_FINALIZED : header->end,
                               .lost_records = header->lost_records,
                               .unknown_requests = header->unknown_requests};
    memset(rank->processor, 0xff, sizeof rank->processor);
}

void node_sums_add(struct node_sums *sums, const struct rank_view *view, unsigned seat, int is_alive)
{
    struct reading *r = map(sizeof *r);
    if (!r)
        return;
    r->sums = sums;
    r->view = view;
    r->seat = seat;
    r->rank = &sums->ranks[sums->rank_count++];
    read_header(r->rank, view);
    r->rank->is_alive = is_alive;
    const struct spool_chunk *chunk = NULL;
    while ((chunk = rank_view_next(view, chunk)))
        if (chunk->kind == SPOOL_CHUNK_STREAM)
            read_stream(r, chunk);
    while ((chunk = rank_view_next(view, chunk))) {
        if (chunk->kind == SPOOL_CHUNK_CELLS)
            read_cells(r, chunk);
        else if (chunk->kind == SPOOL_CHUNK_LIVE)
            read_state(r, chunk);
        else if (chunk->kind == SPOOL_CHUNK_TALLY)
            read_injections(r, chunk);
    }
    munmap(r, sizeof *r);
}

/* --- what is kept ------------------------------------------------------------------------------------------------- */

static int is_rest(const struct node_site *site)
{
    return site->cell.sums.size_class == SPOOL_CELL_REST;
}

/* Those of functions first, then by time; whatever decides nothing is the same on all nodes. */
static int by_time(const void *a, const void *b)
{
    const struct node_site *one = a, *other = b;
    if (is_rest(one) != is_rest(other))
        return is_rest(one) ? -1 : 1;
    uint64_t time = time_in(&one->cell), other_time = time_in(&other->cell);
    return time != other_time ? (time > other_time ? -1 : 1) : memcmp(&one->cell, &other->cell, 8);
}

/* Heap sort: the C library's qsort may take memory of the application's malloc. */
static void sift(struct node_site *sites, unsigned at, unsigned count)
{
    for (unsigned child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && by_time(&sites[child + 1], &sites[child]) > 0)
            child++;
        if (by_time(&sites[child], &sites[at]) <= 0)
            return;
        struct node_site swapped = sites[at];
        sites[at] = sites[child];
        sites[child] = swapped;
    }
}

static void sort_sites(struct node_site *sites, unsigned count)
{
    for (unsigned at = count / 2; at-- > 0;)
        sift(sites, at, count);
    for (unsigned last = count; last-- > 1;) {
        struct node_site swapped = sites[0];
        sites[0] = sites[last];
        sites[last] = swapped;
        sift(sites, 0, last);
    }
}

static struct node_site *rest_site(struct node_sums *sums, unsigned count, const struct spool_cell *cell)
{
    struct spool_cell rest = rest_of(cell);
    for (unsigned i = 0; i < count; i++)
        if (!memcmp(&sums->sites[i].cell, &rest, 8))
            return &sums->sites[i];
    return NULL;
}

void node_sums_keep(struct node_sums *sums, unsigned sites)
{
    sort_sites(sums->sites, sums->site_count);
    unsigned kept = 0;
    while (kept < sums->site_count && is_rest(&sums->sites[kept]))
        kept++;
    kept = sites > kept ? sites : kept;
    for (unsigned i = kept; i < sums->site_count; i++) {
        struct node_site *site = &sums->sites[i], *into = rest_site(sums, kept, &site->cell);
        struct spool_cell cell = rest_of(&site->cell);
        if (into) {
            spool_cell_add(&into->cell, &cell);
            into->processes = into->processes > site->processes ? into->processes : site->processes;
            continue;
        }
        struct node_site own_site = *site; /* the first of its function stays, as that of the function */
        own_site.cell = cell;
        sums->sites[kept++] = own_site;
    }
    sums->site_count = kept < sums->site_count ? kept : sums->site_count;
}
