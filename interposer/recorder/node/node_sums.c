#define _GNU_SOURCE
#include "node_sums.h"

#include "../base/call.h"
#include "../base/intern.h"
#include "rank_paths.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* A rank that is being added. */
struct reading {
    struct node_sums *sums;
    const struct rank_view *view;
    struct node_rank *rank;
    unsigned seat;
    uint64_t bounds_ns;      /* what may have been folded away */
    struct rank_paths paths;
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

/* The site of a cell, whose first eight bytes are its key: there is room. What was folded away before may have been its. */
static struct node_site *site_of(struct node_sums *sums, const struct spool_cell *cell)
{
    uint16_t *bucket = site_bucket(sums, &cell->sums);
    for (uint16_t at = *bucket; at; at = sums->sites[at - 1].next)
        if (!memcmp(&sums->sites[at - 1].cell, cell, 8))
            return &sums->sites[at - 1];
    struct node_site *site = &sums->sites[sums->site_count];
    *site = (struct node_site){.cell.error_ticks = cell->sums.size_class == SPOOL_CELL_REST ? 0 : sums->folded_ns};
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

static void add_site(struct reading *r, const struct spool_cell *cell)
{
    struct node_site *site = site_of(r->sums, cell);
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

/* Where there are too many sites, or frames, half of the sites go. */
static void make_room(struct node_sums *sums)
{
    node_sums_keep(sums, NODE_SITES / 2);
    node_sums_number_frames(sums);
    for (unsigned i = 0; i < sums->site_count; i++) {
        uint32_t *path = &sums->sites[i].cell.sums.path;
        *path = *path ? sums->frames.frames[*path - 1].number : 0;
    }
    node_frames_compact(&sums->frames);
    memset(sums->site_buckets, 0, sizeof sums->site_buckets);
    for (unsigned i = 0; i < sums->site_count; i++) {
        uint16_t *bucket = site_bucket(sums, &sums->sites[i].cell.sums);
        sums->sites[i].next = *bucket;
        *bucket = (uint16_t)(i + 1);
    }
}

static uint16_t path_place(struct reading *r, uint32_t path)
{
    int is_full;
    uint16_t place = rank_paths_place(&r->paths, &r->sums->frames, path, &is_full);
    if (!is_full)
        return place;
    make_room(r->sums);
    return rank_paths_place(&r->paths, &r->sums->frames, path, &is_full);
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
    if (r->sums->site_count == NODE_SITES)
        make_room(r->sums);
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
    if (view->type == SPOOL_MODULE)
        rank_paths_add_module(&r->paths, view);
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
    while ((chunk = rank_view_next(view, chunk))) {
        if (chunk->kind == SPOOL_CHUNK_STREAM)
            read_stream(r, chunk);
        else if (chunk->kind == SPOOL_CHUNK_FRAMES)
            rank_paths_add_frames(&r->paths, chunk);
    }
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
        uint64_t had = spool_sum(time_in(&site->cell), site->cell.error_ticks);
        sums->folded_ns = had > sums->folded_ns ? had : sums->folded_ns;
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

void node_sums_number_frames(struct node_sums *sums)
{
    node_frames_begin_numbers(&sums->frames);
    for (unsigned i = 0; i < sums->site_count; i++)
        node_frame_mark(&sums->frames, (uint16_t)sums->sites[i].cell.sums.path);
    node_frames_number(&sums->frames);
}
