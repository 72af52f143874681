#define _GNU_SOURCE
#include "job_page.h"

#include "../base/call.h"
#include "../base/clock.h"
#include "node_sums.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "job.inc"

enum {
    SETTINGS_BYTES = 10240,  /* at most of the page */
    RANK_ROWS = 160          /* more ranks share rows */
};

static const int64_t LONGEST_NS = INT64_C(1) << 56, LONGEST_SUM_NS = INT64_C(1) << 60, MOST = INT64_C(1) << 48;

/* What a reader believes of a number. */
static int64_t bounded(uint64_t value, int64_t most)
{
    return value < (uint64_t)most ? (int64_t)value : most;
}

/* --- what a rank's spool says of itself --------------------------------------------------------------------------- */

struct words {
    char executable[2048], command[2048], mpi_abi[32], mpi_library[256], mpi_standard[16], lapscope_version[32];
};

static void take_word(struct words *words, const struct spool_view *view)
{
    const struct {
        const char *key;
        char *to;
        size_t bytes;
    } known[] = {{"executable", words->executable, sizeof words->executable},
                 {"command", words->command, sizeof words->command},
                 {"mpi_abi", words->mpi_abi, sizeof words->mpi_abi},
                 {"mpi_library", words->mpi_library, sizeof words->mpi_library},
                 {"mpi_standard", words->mpi_standard, sizeof words->mpi_standard},
                 {"lapscope_version", words->lapscope_version, sizeof words->lapscope_version}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (view->meta.key_bytes == strlen(known[i].key) && !memcmp(view->payload, known[i].key, view->meta.key_bytes))
            snprintf(known[i].to, known[i].bytes, "%.*s", (int)view->meta.value_bytes, (const char *)view->payload2);
}

typedef void take_meta(void *context, const struct spool_view *view);

static void each_meta(const struct rank_view *rank, take_meta *take, void *context)
{
    const struct spool_chunk *chunk = NULL;
    while ((chunk = rank_view_next(rank, chunk))) {
        struct spool_cursor cursor = chunk->kind == SPOOL_CHUNK_STREAM ? rank_view_records(chunk) : (struct spool_cursor){NULL, NULL};
        struct spool_view view;
        while (cursor.at && spool_next_definition(&cursor, &view))
            if (view.type == SPOOL_META)
                take(context, &view);
    }
}

static void take_words(void *context, const struct spool_view *view)
{
    take_word(context, view);
}

struct settings {
    struct job_text *text;
    const char *prefix, *kind;
    size_t limit;            /* of the text */
};

/* Options say where their value came from: defaults are not worth their room. */
static void take_setting(void *context, const struct spool_view *view)
{
    const struct settings *settings = context;
    char name[256], value[1024];
    size_t prefix = strlen(settings->prefix);
    if (view->meta.key_bytes <= prefix || memcmp(view->payload, settings->prefix, prefix) != 0)
        return;
    snprintf(name, sizeof name, "%.*s", (int)(view->meta.key_bytes - prefix), (const char *)view->payload + prefix);
    snprintf(value, sizeof value, "%.*s", (int)view->meta.value_bytes, (const char *)view->payload2);
    char *tab = strcmp(settings->kind, "option") == 0 ? strchr(value, '\t') : NULL;
    if (tab && strcmp(tab + 1, "default") == 0)
        return;
    if (tab)
        *tab = '\0';
    if (settings->text->used + 2 * (strlen(name) + strlen(value)) > settings->limit)
        return;
    job_put_setting(settings->text, &(struct job_setting){settings->kind, name, value});
}

static void put_settings(struct job_text *text, const struct rank_view *rank)
{
    static const char *const kinds[][2] = {{"option.", "option"}, {"environment.", "environment"}, {"cvar.", "cvar"}};
    struct settings settings = {.text = text, .limit = text->used + SETTINGS_BYTES};
    job_put(text, JOB_HEAD_setting);
    for (size_t i = 0; rank && i < sizeof kinds / sizeof kinds[0]; i++) {
        settings.prefix = kinds[i][0];
        settings.kind = kinds[i][1];
        each_meta(rank, take_setting, &settings);
    }
}

/* --- ranks -------------------------------------------------------------------------------------------------------- */

static const char *end_of(const struct node_rank *rank)
{
    static const char *const words[] = {[SPOOL_FINALIZED] = "finalize", [SPOOL_ABORTED] = "abort", [SPOOL_EXITED] = "exit"};
    if (rank->end != SPOOL_OPEN && rank->end <= SPOOL_EXITED)
        return words[rank->end];
    return rank->is_alive ? "running" : "killed";
}

/* Of several ranks in one row. */
static const char *worse(const char *one, const char *other)
{
    static const char *const best_first[] = {"finalize", "running", "exit", "abort", "killed"};
    for (size_t i = sizeof best_first / sizeof best_first[0]; i-- > 0;)
        if (!strcmp(best_first[i], one) || !strcmp(best_first[i], other))
            return best_first[i];
    return one;
}

static void add_rank(struct job_rank *row, const struct node_rank *rank, int64_t offset_ns)
{
    int64_t *const times[NODE_TIMES] = {&row->posting_ns, &row->completing_ns, &row->blocking_ns,          &row->collective_ns,
                                        &row->rma_ns,     &row->io_ns,         &row->unsuccessful_test_ns, &row->other_ns};
    int64_t begin = bounded((uint64_t)(rank->init_end_ns + offset_ns), LONGEST_NS), end = bounded((uint64_t)(rank->end_ns + offset_ns), LONGEST_NS);
    int is_first = row->processes == 0;
    row->processes++;
    row->ended = is_first ? end_of(rank) : worse(row->ended, end_of(rank));
    row->init_end_ns = is_first || begin < row->init_end_ns ? begin : row->init_end_ns;
    row->end_ns = is_first || end > row->end_ns ? end : row->end_ns;
    row->threads += (int64_t)rank->threads;
    row->requests = bounded((uint64_t)row->requests + rank->requests, MOST);
    row->calls = bounded((uint64_t)row->calls + rank->calls, MOST);
    row->unsuccessful_tests = bounded((uint64_t)row->unsuccessful_tests + rank->unsuccessful_tests, MOST);
    for (size_t i = 0; i < NODE_TIMES; i++)
        *times[i] = bounded((uint64_t)*times[i] + rank->times_ns[i], LONGEST_SUM_NS);
    row->overlappable_ns = bounded((uint64_t)row->overlappable_ns + rank->overlappable_ns, LONGEST_SUM_NS);
    row->sent_bytes = bounded(spool_sum((uint64_t)row->sent_bytes, rank->sent_bytes), INT64_MAX >> 1);
    row->received_bytes = bounded(spool_sum((uint64_t)row->received_bytes, rank->received_bytes), INT64_MAX >> 1);
    row->lost_records = bounded((uint64_t)row->lost_records + rank->lost_records, MOST);
    row->unknown_requests = bounded((uint64_t)row->unknown_requests + rank->unknown_requests, MOST);
    enum { RUN, WAIT, SWITCHES, PREEMPTIONS, ALLOWED, ONLINE, PEAK };
    int64_t *const values[] = {&row->run_ns, &row->wait_ns, &row->preemptions, &row->allowed, &row->peak_memory_bytes};
    static const int places[] = {RUN, WAIT, PREEMPTIONS, ALLOWED, PEAK};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        int64_t value = rank->processor[places[i]];
        if (value < 0 || (!is_first && *values[i] == JOB_NULL))
            *values[i] = JOB_NULL;
        else if (places[i] == PEAK || places[i] == ALLOWED)
            *values[i] = is_first || value > *values[i] ? value : *values[i];
        else
            *values[i] = is_first ? value : *values[i] + value;
    }
}

static void put_ranks(struct job_text *text, const struct node_sums *sums, int64_t began_unix_ns)
{
    unsigned share = (sums->rank_count + RANK_ROWS - 1) / RANK_ROWS;
    job_put(text, JOB_HEAD_rank);
    for (unsigned first = 0; first < sums->rank_count; first += share) {
        const struct node_rank *rank = &sums->ranks[first];
        struct job_rank row = {.world = rank->world, .world_rank = rank->world_rank, .life = rank->life, .pid = rank->pid};
        for (unsigned i = first; i < first + share && i < sums->rank_count; i++)
            add_rank(&row, &sums->ranks[i], sums->ranks[i].began_unix_ns - began_unix_ns);
        job_put_rank(text, &row);
    }
}

/* --- sites -------------------------------------------------------------------------------------------------------- */

static void put_module(struct job_text *text, const struct node_module *module, unsigned number)
{
    char path[JOB_LONGEST_TEXT], build_id[2 * 64 + 1] = "";
    int is_text = module->build_id_bytes > 7 && memcmp(module->build_id, "python:", 7) == 0;
    snprintf(path, sizeof path, "%.*s", (int)module->path_bytes, (const char *)module->path);
    if (is_text)
        snprintf(build_id, sizeof build_id, "%.*s", (int)module->build_id_bytes, (const char *)module->build_id);
    for (unsigned i = 0; !is_text && i < module->build_id_bytes && i < 64; i++)
        snprintf(build_id + 2 * i, 3, "%02x", module->build_id[i]);
    job_put_module(text, &(struct job_module){number, path, *build_id ? build_id : NULL});
}

static void put_places(struct job_text *text, struct node_sums *sums)
{
    const struct node_frames *frames = &sums->frames;
    node_sums_number_frames(sums);
    job_put(text, JOB_HEAD_module);
    for (unsigned i = 0; i < frames->module_count; i++)
        if (frames->modules[i].number)
            put_module(text, &frames->modules[i], frames->modules[i].number);
    job_put(text, JOB_HEAD_frame);
    for (unsigned i = 0; i < frames->frame_count; i++) {
        const struct node_frame *frame = &frames->frames[i];
        if (frame->number)
            job_put_frame(text, &(struct job_frame){frame->number, frame->caller ? frames->frames[frame->caller - 1].number : JOB_NULL,
                                                    frame->module ? (int64_t)frames->modules[frame->module - 1].number : JOB_NULL,
                                                    (int64_t)frame->address});
    }
}

static int64_t class_of_mean(const struct spool_tally *sums)
{
    uint64_t mean = sums->count ? sums->bytes / sums->count : 0;
    return mean ? 64 - __builtin_clzll(mean) : 0;
}

static void put_site(struct job_text *text, const struct node_sums *sums, const struct node_site *site)
{
    const struct spool_cell *cell = &site->cell;
    int is_rest = cell->sums.size_class == SPOOL_CELL_REST;
    uint64_t missed = sums->bounds_ns > site->bounds_ns ? sums->bounds_ns - site->bounds_ns : 0; /* on ranks that do not have it */
    struct job_site row = {
        .call = call_names[cell->sums.call_plus_1 - 1],
        .frame = cell->sums.path ? sums->frames.frames[cell->sums.path - 1].number : JOB_NULL,
        .reason = cell->sums.reason == SPOOL_TALLY_UNSUCCESSFUL_TEST ? "unsuccessful_test" : "summary",
        .size_class = is_rest ? class_of_mean(&cell->sums) : cell->sums.size_class,
        .count = bounded(cell->sums.count, MOST),
        .bytes = bounded(cell->sums.bytes, INT64_MAX >> 1),
        .inside_ns = bounded(cell->sums.inside_ticks, LONGEST_SUM_NS),
        .exposed_ns = bounded(cell->sums.completion_ticks, LONGEST_SUM_NS),
        .mpi_ns = bounded(cell->sums.mpi_ticks, LONGEST_SUM_NS),
        .overlap_window_ns = bounded(cell->sums.window_ticks, LONGEST_SUM_NS),
        .overlappable_ns = bounded(cell->overlappable_ticks, LONGEST_SUM_NS),
        .error_ns = is_rest ? 0 : bounded(spool_sum(cell->error_ticks, missed), LONGEST_SUM_NS),
        .processes = site->processes,
        .most_world_rank = site->most_rank,
        .most_ns = bounded(site->most_ns, LONGEST_SUM_NS),
        .at_once = bounded(cell->at_once, MOST),
        .most_bytes_at_once = bounded(cell->most_bytes_at_once, INT64_MAX >> 1),
        .least_bytes_waiting = cell->waiting ? bounded(cell->least_bytes_waiting, INT64_MAX >> 1) : JOB_NULL};
    job_put_site(text, &row);
}

static void put_injection(struct job_text *text, const struct node_injection *all)
{
    job_put(text, JOB_HEAD_injector);
    if (!all->processes)
        return;
    struct job_injector row = {.mode = all->mode,
                               .problem = *all->problem ? all->problem : NULL,
                               .processes = (int64_t)all->processes,
                               .requests = bounded(all->requests, MOST),
                               .tests = bounded(all->tests, MOST),
                               .found = bounded(all->found, MOST),
                               .test_ns = bounded(all->test_ns, LONGEST_SUM_NS),
                               .idle_ns = bounded(all->idle_ns, LONGEST_SUM_NS),
                               .interrupts = bounded(all->interrupts, MOST),
                               .spent_ns = bounded(all->spent_ns, LONGEST_SUM_NS),
                               .automatic = *all->automatic ? all->automatic : NULL};
    job_put_injector(text, &row);
}

/* --- the page ----------------------------------------------------------------------------------------------------- */

static void put_head(struct job_text *text, const struct job_page_facts *facts, const struct attendance *own, const struct node_sums *sums,
                     const struct words *words, int64_t began, int is_last)
{
    struct meeting_keeper keeper;
    meeting_describe(own, &keeper);
    job_put(text, JOB_FIRST_LINE JOB_HEAD_keeper);
    job_put_keeper(text, &(struct job_keeper){keeper.pid, (int64_t)keeper.pid_start, (int64_t)keeper.pid_namespace, keeper.boot_id,
                                              keeper.fd});
    const struct node_rank *first = sums->rank_count ? &sums->ranks[0] : NULL;
    struct job_record row = {.job = facts->job.identity,
                             .launch = *facts->job.launch ? facts->job.launch : NULL,
                             .batch_job = *facts->batch_job ? facts->batch_job : NULL,
                             .nodes = facts->nodes > 0 ? facts->nodes : JOB_NULL,
                             .host = facts->host,
                             .user = facts->user,
                             .executable = words->executable,
                             .command = facts->has_command && *words->command ? words->command : NULL,
                             .mpi_abi = words->mpi_abi,
                             .mpi_library = words->mpi_library,
                             .mpi_standard = words->mpi_standard,
                             .lapscope_version = words->lapscope_version,
                             .thread_level = first ? first->thread_level : 0,
                             .world_size = first ? first->world_size : 1,
                             .began_unix_ns = began,
                             .written_unix_ns = (int64_t)clock_nanoseconds(CLOCK_REALTIME),
                             .is_last = is_last};
    job_put(text, JOB_HEAD_record);
    job_put_record(text, &row);
}

static void put_page(struct job_text *text, const struct job_page_facts *facts, const struct attendance *own, struct node_sums *sums,
                     const struct rank_view *first, int is_last)
{
    struct words words = {.executable = ""};
    int64_t began = facts->began_unix_ns;
    for (unsigned i = 0; i < sums->rank_count; i++)
        began = sums->ranks[i].began_unix_ns < began ? sums->ranks[i].began_unix_ns : began;
    if (first)
        each_meta(first, take_words, &words);
    text->used = 0;
    text->is_cut = 0;
    put_head(text, facts, own, sums, &words, began, is_last);
    put_settings(text, first);
    put_ranks(text, sums, began);
    put_injection(text, &sums->injection);
    put_places(text, sums);
    job_put(text, JOB_HEAD_site);
    for (unsigned i = 0; i < sums->site_count; i++)
        put_site(text, sums, &sums->sites[i]);
    job_put(text, "[end]\n");
}

/* As many sites as fit. */
static void fit_page(struct job_text *text, const struct job_page_facts *facts, const struct attendance *own, struct node_sums *sums,
                     const struct rank_view *first, int is_last)
{
    unsigned sites = sums->site_count;
    node_sums_keep(sums, sites);
    put_page(text, facts, own, sums, first, is_last);
    while (text->is_cut && sites > 1) {
        sites -= sites / 8 + 1;
        node_sums_keep(sums, sites);
        put_page(text, facts, own, sums, first, is_last);
    }
}

int job_page_write(struct job_text *text, const struct job_page_facts *facts, const struct attendance *own, int is_last)
{
    struct rank_view views[MEETING_SEATS];
    unsigned seats, count = 0;
    const unsigned char *rooms = meeting_map_rooms(own, &seats);
    struct node_sums *sums = rooms ? node_sums_create(seats) : NULL;
    for (unsigned i = 0; sums && i < seats; i++)
        if (rank_view_open(&views[count], rooms + (size_t)i * MEETING_SEAT_BYTES, MEETING_SEAT_BYTES))
            node_sums_add(sums, &views[count++], i, meeting_is_alive(own, i));
    if (sums) {
        fit_page(text, facts, own, sums, count ? &views[0] : NULL, is_last);
        node_sums_destroy(sums, seats);
    }
    if (rooms)
        meeting_unmap_rooms(rooms, seats);
    return sums && !text->is_cut;
}
