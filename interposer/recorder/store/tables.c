#include "tables.h"

#include "../base/call.h"
#include "embedded.h"
#include "sql.h"
#include "vfs.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

enum { PAGE_BYTES = 4096 };

#define INSERT(table) "INSERT INTO " #table " VALUES(" VALUES_##table ")"
#define REPLACE(table) "INSERT OR REPLACE INTO " #table " VALUES(" VALUES_##table ")"
#define FROM_BATCH(table, columns) "INSERT INTO " #table "(" columns ") SELECT " columns " FROM " #table "_batch"
/* The others are NULL in most runs. */
#define COLUMNS_IN_ALL_REQUESTS \
    "operation_id,completion_id,thread_id,post_begin_ns,post_ns,mpi_ns,outstanding_bytes,unsuccessful_tests"

static const char *const statement_texts[STORE_STATEMENTS] = {
    [STORE_RANK] = INSERT(rank),
    [STORE_PROCESSOR] = REPLACE(processor),
    [STORE_STARVATION] = INSERT(starvation),
    [STORE_OPTION] = REPLACE(option),
    [STORE_ENVIRONMENT] = REPLACE(environment),
    [STORE_CVAR] = REPLACE(cvar),
    [STORE_THREAD] = INSERT(thread),
    [STORE_CALL_NAME] = INSERT(call_name),
    [STORE_MODULE] = INSERT(module),
    [STORE_PATH] = INSERT(call_path),
    [STORE_FRAME] = INSERT(frame),
    [STORE_COMM] = INSERT(communicator),
    [STORE_MEMBER] = INSERT(communicator_member),
    [STORE_OPERATION] = INSERT(operation),
    /* ids left to SQLite: it counts on from 1, and need not search for what is there */
    [STORE_CALLS] = FROM_BATCH(call, COLUMNS_call),
    [STORE_REQUESTS] = FROM_BATCH(request, COLUMNS_IN_ALL_REQUESTS),
    [STORE_REQUESTS_TESTED] = FROM_BATCH(request, COLUMNS_request),
    [STORE_COUNTER] = REPLACE(counter),
    [STORE_CALL_COUNTERS] = FROM_BATCH(call_counter, COLUMNS_call_counter),
    [STORE_REQUEST_COUNTERS] = FROM_BATCH(request_counter, COLUMNS_request_counter),
    [STORE_TALLY] = INSERT(tally),
    [STORE_INJECTOR] = REPLACE(injector),
    [STORE_AUTOMATIC] = "UPDATE injector SET automatic = ?2 WHERE rank = ?1",
    [STORE_COPIED_SENDS] = REPLACE(copied_sends),
    [STORE_INJECTION] = INSERT(injection),
    [STORE_WATCHER] = REPLACE(watcher),
    [STORE_WATCH_LEFT_OUT] = REPLACE(watch_left_out),
    [STORE_SAMPLER] = REPLACE(sampler),
    [STORE_SAMPLE] = INSERT(sample),
    [STORE_SAMPLE_POST] = INSERT(sample_post),
    [STORE_COUNTER_SUM] = REPLACE(counter_sum),
    [STORE_DETAIL] = INSERT(detail),
    [STORE_LEFT_OUT] = INSERT(left_out),
    [STORE_OPEN_WAIT] = INSERT(open_wait),
    [STORE_MARK] = INSERT(mark),
    [STORE_WATCH] = INSERT(watch),
    [STORE_REQUEST_MEMORY] = INSERT(request_memory),
    [STORE_DEVICE_RECORDER] = REPLACE(device_recorder),
    [STORE_DEVICE_BUSY] = INSERT(device_busy),
};

/* --- opening and closing ------------------------------------------------------------------------------------------ */

/* A write beyond the process's limit on the size of files would be a signal that ends the application: SQLite is told
 * to see a full disk before that. */
static void respect_file_size_limit(struct store_tables *tables)
{
    struct rlimit limit;
    char pragma[64];
    if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur / PAGE_BYTES > INT32_MAX)
        return;
    unsigned pages = (unsigned)(limit.rlim_cur / PAGE_BYTES);
    if (pages == 0) {
        store_check(tables, SQLITE_FULL);
        return;
    }
    snprintf(pragma, sizeof pragma, "PRAGMA max_page_count=%u", pages);
    store_check(tables, sqlite3_exec(tables->db, pragma, NULL, NULL, NULL));
}

/* Whether that is what filled it up. */
static int is_at_file_size_limit(struct store_tables *tables)
{
    struct rlimit limit;
    sqlite3_stmt *count = NULL;
    int64_t pages = 0;
    if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return 0;
    if (sqlite3_prepare_v2(tables->db, "PRAGMA page_count", -1, &count, NULL) == SQLITE_OK && sqlite3_step(count) == SQLITE_ROW)
        pages = sqlite3_column_int64(count, 0);
    sqlite3_finalize(count);
    return limit.rlim_cur < PAGE_BYTES || ((uint64_t)pages + 1) * PAGE_BYTES > limit.rlim_cur;
}

/* NULL where the text is empty. */
static void bind_word(struct store_tables *tables, int column, const char *text)
{
    if (*text)
        store_words(tables, STORE_CALL_NAME, column, text);
}

static void write_call_names(struct store_tables *tables)
{
    for (int i = 0; i < CALL_COUNT; i++) {
        const struct call_facts *facts = &call_facts[i];
        store_integer(tables, STORE_CALL_NAME, COLUMN_CALL_NAME_ID, i);
        store_words(tables, STORE_CALL_NAME, COLUMN_CALL_NAME_NAME, call_names[i]);
        bind_word(tables, COLUMN_CALL_NAME_FAMILY, facts->family);
        bind_word(tables, COLUMN_CALL_NAME_ROLE, facts->role);
        bind_word(tables, COLUMN_CALL_NAME_USUAL_KIND, facts->kind);
        bind_word(tables, COLUMN_CALL_NAME_TRANSFERS, facts->transfers);
        bind_word(tables, COLUMN_CALL_NAME_MODE, facts->mode);
        store_integer(tables, STORE_CALL_NAME, COLUMN_CALL_NAME_COUNTED, facts->counted);
        bind_word(tables, COLUMN_CALL_NAME_NEEDS, facts->needs);
        bind_word(tables, COLUMN_CALL_NAME_COMPLETES, facts->completes);
        bind_word(tables, COLUMN_CALL_NAME_BLOCKING, facts->blocking);
        store_run(tables, STORE_CALL_NAME);
    }
}

void store_tables_open(struct store_tables *tables, const char *path)
{
    *tables = (struct store_tables){.rank = -1,
                                    .call_operations.entry_bytes = sizeof(int64_t),
                                    .request_operations.entry_bytes = sizeof(int64_t),
                                    .pending_operations.entry_bytes = sizeof(int64_t)};
    /* The file is ours alone until it is renamed: no locks, which some parallel file systems refuse, and no journal,
     * which would protect nothing. */
    store_check(tables, sqlite3_open_v2(path, &tables->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, store_vfs(0)));
    const char *const setup[] = {"PRAGMA page_size=4096; PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF;"
                                 "PRAGMA locking_mode=EXCLUSIVE; PRAGMA cache_size=-4096",
                                 "BEGIN", embedded_schema, embedded_views};
    for (size_t i = 0; i < sizeof setup / sizeof setup[0]; i++) {
        if (!tables->failed)
            store_check(tables, sqlite3_exec(tables->db, setup[i], NULL, NULL, NULL));
        if (i == 0 && !tables->failed)
            respect_file_size_limit(tables);
    }
    store_rows_open(tables);
    for (int i = 0; !tables->failed && i < STORE_STATEMENTS; i++)
        store_check(tables, sqlite3_prepare_v3(tables->db, statement_texts[i], -1, SQLITE_PREPARE_PERSISTENT,
                                               &tables->statements[i], NULL));
    if (!tables->failed)
        write_call_names(tables);
}

static void forget_operations(struct store_tables *tables)
{
    struct id_table *of_rank[] = {&tables->call_operations, &tables->request_operations, &tables->pending_operations};
    for (size_t i = 0; i < sizeof of_rank / sizeof of_rank[0]; i++) {
        free(of_rank[i]->entries);
        *of_rank[i] = (struct id_table){.entry_bytes = of_rank[i]->entry_bytes};
    }
}

void store_rank_begin(struct store_tables *tables, const struct spool_file_header *header)
{
    int is_first = header->world == 1 && header->life <= 1;
    tables->world_rank = header->rank;
    if (is_first && header->world_size > tables->free_key)
        tables->free_key = header->world_size;
    if (is_first && header->rank > tables->rank)
        tables->rank = header->rank;
    else
        tables->rank = tables->free_key > tables->rank ? tables->free_key : tables->rank + 1;
    if (tables->rank >= tables->free_key)
        tables->free_key = tables->rank + 1;
}

void store_rank_end(struct store_tables *tables, const struct spool_definitions *definitions, int64_t calls, int64_t requests)
{
    tables->base.thread += (int64_t)definitions->threads.size;
    tables->base.module += (int64_t)definitions->modules.size;
    tables->base.path += (int64_t)definitions->paths.size;
    tables->base.comm += (int64_t)definitions->comms.size;
    tables->base.call += calls;
    tables->base.request += requests;
    forget_operations(tables);
}

int store_tables_close(struct store_tables *tables, const char *path, char *error, size_t error_bytes)
{
    store_rows_flush(tables);
    for (int i = 0; i < STORE_STATEMENTS; i++)
        sqlite3_finalize(tables->statements[i]);
    if (!tables->failed)
        store_check(tables, sqlite3_exec(tables->db, "COMMIT", NULL, NULL, NULL));
    int limited = tables->failed == SQLITE_FULL && is_at_file_size_limit(tables);
    sqlite3_close(tables->db);
    store_rows_close(tables);
    forget_operations(tables);
    if (!tables->failed)
        return 0;
    if (limited) { /* SQLite was told of a full disk: see respect_file_size_limit */
        snprintf(error, error_bytes, "%s cannot be written: it would be longer than files may be, raise that limit (ulimit -f)", path);
        return -1;
    }
    const char *advice = tables->failed == SQLITE_FULL    ? ": free some space there"
                         : tables->failed == SQLITE_NOMEM ? ": convert it where there is more memory"
                                                          : "";
    snprintf(error, error_bytes, "%s cannot be written (%s)%s", path, tables->trouble, advice);
    return -1;
}

/* --- rows --------------------------------------------------------------------------------------------------------- */

static void store_tally(struct store_tables *tables, const struct spool_definitions *definitions, unsigned thread,
                        const struct spool_tally *tally)
{
    store_integer(tables, STORE_TALLY, COLUMN_TALLY_RANK, tables->rank);
    store_integer(tables, STORE_TALLY, COLUMN_TALLY_THREAD_ID, tables->base.thread + thread);
    store_integer(tables, STORE_TALLY, COLUMN_TALLY_CALL_ID, tally->call_plus_1 - 1);
    store_integer_or_null(tables, STORE_TALLY, COLUMN_TALLY_CALL_PATH_ID, spool_has_path(definitions, tally->path),
                          tables->base.path + tally->path);
    int is_test = tally->reason == SPOOL_TALLY_UNSUCCESSFUL_TEST;
    store_words(tables, STORE_TALLY, COLUMN_TALLY_REASON, is_test ? "unsuccessful_test" : "summary");
    store_integer(tables, STORE_TALLY, COLUMN_TALLY_SIZE_CLASS, tally->size_class);
    store_integer(tables, STORE_TALLY, COLUMN_TALLY_COUNT, (int64_t)tally->count);
    store_integer(tables, STORE_TALLY, COLUMN_TALLY_BYTES, (int64_t)tally->bytes);
    store_integer(tables, STORE_TALLY, COLUMN_TALLY_INSIDE_NS, spool_ns(definitions, tally->inside_ticks));
    store_integer(tables, STORE_TALLY, COLUMN_TALLY_EXPOSED_NS, spool_ns(definitions, tally->completion_ticks));
    store_integer(tables, STORE_TALLY, COLUMN_TALLY_MPI_NS, spool_ns(definitions, tally->mpi_ticks));
    store_integer(tables, STORE_TALLY, COLUMN_TALLY_OVERLAP_WINDOW_NS, spool_ns(definitions, tally->window_ticks));
    store_run(tables, STORE_TALLY);
}

static void store_injection(struct store_tables *tables, const struct spool_definitions *definitions, unsigned thread,
                            const struct spool_injection *injection)
{
    int has_path = spool_has_path(definitions, injection->path);
    store_integers(tables, STORE_INJECTION,
                   (int64_t[]){tables->rank, tables->base.thread + thread, injection->call_plus_1 - 1,
                               has_path ? tables->base.path + injection->path : -1,
                               !injection->is_off, (int64_t)injection->requests, (int64_t)injection->tests,
                               (int64_t)injection->found, spool_ns(definitions, injection->test_ticks),
                               spool_ns(definitions, injection->idle_ticks), injection->interrupts, injection->deferred,
                               spool_ns(definitions, injection->interrupt_ticks)},
                   13, 3);
}

static int sample_is_sound(const struct spool_definitions *definitions, const struct spool_sample *sample)
{
    for (int i = 0; i < SPOOL_SAMPLE_POSTS; i++)
        if (sample->post_calls_plus_1[i] > CALL_COUNT)
            return 0;
    return sample->thread <= SPOOL_SAMPLED_OTHER && spool_has_path(definitions, sample->path) && sample->count <= SPOOL_MOST;
}

static int store_sample(struct store_tables *tables, const struct spool_definitions *definitions, const struct spool_sample *sample)
{
    if (!sample_is_sound(definitions, sample))
        return 0;
    int64_t id = ++tables->last_sample;
    store_integer(tables, STORE_SAMPLE, COLUMN_SAMPLE_ID, id);
    store_integer(tables, STORE_SAMPLE, COLUMN_SAMPLE_RANK, tables->rank);
    store_words(tables, STORE_SAMPLE, COLUMN_SAMPLE_THREAD, sample->thread == SPOOL_SAMPLED_CALLER ? "caller" : "other");
    store_integer(tables, STORE_SAMPLE, COLUMN_SAMPLE_CALL_PATH_ID, tables->base.path + sample->path);
    store_integer(tables, STORE_SAMPLE, COLUMN_SAMPLE_COUNT, (int64_t)sample->count);
    store_run(tables, STORE_SAMPLE);
    for (int i = 0; i < SPOOL_SAMPLE_POSTS && sample->post_calls_plus_1[i]; i++) {
        int has_path = spool_has_path(definitions, sample->post_paths[i]);
        store_integers(tables, STORE_SAMPLE_POST,
                       (int64_t[]){id, sample->post_calls_plus_1[i] - 1, has_path ? tables->base.path + sample->post_paths[i] : -1},
                       3, 2);
    }
    return 1;
}

static int tally_is_sound(const struct spool_tally *tally)
{
    if (tally->call_plus_1 > CALL_COUNT)
        return 0;
    if (tally->reason == SPOOL_TALLY_INJECTION) {
        const struct spool_injection *injection = (const struct spool_injection *)tally;
        return injection->requests <= SPOOL_MOST && injection->tests <= SPOOL_MOST && injection->found <= SPOOL_MOST;
    }
    return tally->size_class <= 64 && tally->count <= SPOOL_MOST && tally->bytes <= SPOOL_MOST_BYTES;
}

int store_entry(struct store_tables *tables, const struct spool_definitions *definitions, unsigned thread,
                const struct spool_tally *tally)
{
    if (tally->reason == SPOOL_TALLY_SAMPLE)
        return store_sample(tables, definitions, (const struct spool_sample *)tally);
    if (!tally_is_sound(tally))
        return 0;
    if (tally->reason == SPOOL_TALLY_INJECTION)
        store_injection(tables, definitions, thread, (const struct spool_injection *)tally);
    else
        store_tally(tables, definitions, thread, tally);
    return 1;
}

static int watch_is_sound(const struct spool_definitions *definitions, const struct spool_watch *watch)
{
    return watch->side <= SPOOL_WATCH_RECEIVE && watch->result <= SPOOL_WATCH_OFTEN && watch->toucher <= SPOOL_TOUCHED_BY_MPI &&
           watch->let_go <= SPOOL_LET_GO_STACK && watch->bytes <= SPOOL_MOST_BYTES && watch->offset <= watch->bytes &&
           (!watch->path || spool_has_path(definitions, watch->path)) &&
           (!watch->copy_path || spool_has_path(definitions, watch->copy_path));
}

int store_watch(struct store_tables *tables, const struct spool_definitions *definitions, unsigned thread,
                const struct spool_watch *watch)
{
    static const char *const sides[] = {"send", "receive"}, *const results[] = {"touched", "untouched", "often"},
                      *const touchers[] = {NULL, "program", "mpi"},
                      *const reasons[] = {NULL, "reused", "ended", "late", "stack"};
    int64_t operation = watch_is_sound(definitions, watch) ? store_call_operation(tables, definitions, watch->operation) : 0;
    if (!operation)
        return 0;
    int64_t away = spool_ns(definitions, watch->away_ticks), mpi = spool_ns(definitions, watch->away_mpi_ticks);
    store_integer(tables, STORE_WATCH, COLUMN_WATCH_OPERATION_ID, operation);
    store_integer(tables, STORE_WATCH, COLUMN_WATCH_THREAD_ID, tables->base.thread + thread);
    store_words(tables, STORE_WATCH, COLUMN_WATCH_SIDE, sides[watch->side]);
    store_integer(tables, STORE_WATCH, COLUMN_WATCH_BEGIN_NS, spool_moment_ns(definitions, watch->begin));
    store_integer(tables, STORE_WATCH, COLUMN_WATCH_EDGE_BEGIN_NS, spool_moment_ns(definitions, watch->edge_begin));
    store_integer(tables, STORE_WATCH, COLUMN_WATCH_BUFFER_BYTES, (int64_t)watch->bytes);
    store_integer(tables, STORE_WATCH, COLUMN_WATCH_OFFSET, (int64_t)watch->offset);
    store_words(tables, STORE_WATCH, COLUMN_WATCH_RESULT, results[watch->result]);
    store_integer(tables, STORE_WATCH, COLUMN_WATCH_AWAY_NS, away);
    store_integer(tables, STORE_WATCH, COLUMN_WATCH_AWAY_MPI_NS, mpi < away ? mpi : away);
    store_integer(tables, STORE_WATCH, COLUMN_WATCH_HITS, watch->hits);
    if (watch->toucher)
        store_words(tables, STORE_WATCH, COLUMN_WATCH_TOUCHER, touchers[watch->toucher]);
    store_integer_or_null(tables, STORE_WATCH, COLUMN_WATCH_CALL_PATH_ID, watch->path != 0, tables->base.path + watch->path);
    if (watch->let_go)
        store_words(tables, STORE_WATCH, COLUMN_WATCH_LET_GO, reasons[watch->let_go]);
    store_integer(tables, STORE_WATCH, COLUMN_WATCH_ON_STACK, watch->flags & SPOOL_WATCH_ON_STACK ? 1 : 0);
    store_integer(tables, STORE_WATCH, COLUMN_WATCH_SPARSE, watch->flags & SPOOL_WATCH_SPARSE ? 1 : 0);
    store_integer_or_null(tables, STORE_WATCH, COLUMN_WATCH_COPY_PATH_ID, watch->copy_path != 0,
                          tables->base.path + watch->copy_path);
    store_run(tables, STORE_WATCH);
    return 1;
}

void store_starvation(struct store_tables *tables, int64_t begin_ns, int64_t end_ns, int64_t wait_ns)
{
    store_integers(tables, STORE_STARVATION, (int64_t[]){tables->rank, begin_ns, end_ns, wait_ns}, 4, 4);
}

void store_request_memory(struct store_tables *tables, int64_t request, enum spool_data_memory memory)
{
    static const char *const words[] = {[SPOOL_MEMORY_HOST] = "host", [SPOOL_MEMORY_MANAGED] = "managed", [SPOOL_MEMORY_DEVICE] = "device"};
    if (memory == SPOOL_MEMORY_UNKNOWN)
        return;
    store_integer(tables, STORE_REQUEST_MEMORY, COLUMN_REQUEST_MEMORY_REQUEST_ID, request);
    store_words(tables, STORE_REQUEST_MEMORY, COLUMN_REQUEST_MEMORY_MEMORY, words[memory]);
    store_run(tables, STORE_REQUEST_MEMORY);
}

void store_device_recorder(struct store_tables *tables, const struct spool_device_state *state)
{
    store_integer(tables, STORE_DEVICE_RECORDER, COLUMN_DEVICE_RECORDER_RANK, tables->rank);
    store_text(tables, STORE_DEVICE_RECORDER, COLUMN_DEVICE_RECORDER_SOURCE, state->source, strnlen(state->source, sizeof state->source));
    if (*state->problem)
        store_text(tables, STORE_DEVICE_RECORDER, COLUMN_DEVICE_RECORDER_PROBLEM, state->problem,
                   strnlen(state->problem, sizeof state->problem));
    store_integer(tables, STORE_DEVICE_RECORDER, COLUMN_DEVICE_RECORDER_RESOLUTION_NS, (int64_t)state->resolution_ns);
    store_integer(tables, STORE_DEVICE_RECORDER, COLUMN_DEVICE_RECORDER_LOST, (int64_t)state->lost);
    store_run(tables, STORE_DEVICE_RECORDER);
}

void store_device_busy(struct store_tables *tables, int64_t device, unsigned work, int64_t begin_ns, int64_t end_ns, int64_t busy_ns)
{
    static const char *const works[STORE_DEVICE_WORKS] = {"kernel", "to_device", "to_host", "other"};
    store_integer(tables, STORE_DEVICE_BUSY, COLUMN_DEVICE_BUSY_RANK, tables->rank);
    store_integer(tables, STORE_DEVICE_BUSY, COLUMN_DEVICE_BUSY_DEVICE, device);
    store_words(tables, STORE_DEVICE_BUSY, COLUMN_DEVICE_BUSY_WORK, works[work]);
    store_integer(tables, STORE_DEVICE_BUSY, COLUMN_DEVICE_BUSY_BEGIN_NS, begin_ns);
    store_integer(tables, STORE_DEVICE_BUSY, COLUMN_DEVICE_BUSY_END_NS, end_ns);
    store_integer(tables, STORE_DEVICE_BUSY, COLUMN_DEVICE_BUSY_BUSY_NS, busy_ns);
    store_run(tables, STORE_DEVICE_BUSY);
}

void store_detail(struct store_tables *tables, int64_t slot, int64_t stage, int64_t begin_ns, int64_t end_ns, int is_cut)
{
    store_integers(tables, STORE_DETAIL, (int64_t[]){tables->rank, slot, stage, begin_ns, end_ns, is_cut}, 6, 6);
}

void store_left_out(struct store_tables *tables, int64_t operation, int64_t count, int64_t begin_ns, int64_t end_ns)
{
    store_integers(tables, STORE_LEFT_OUT, (int64_t[]){operation, count, begin_ns, end_ns}, 4, 4);
}

void store_open_wait(struct store_tables *tables, int64_t call, int64_t request, int is_certain)
{
    store_integers(tables, STORE_OPEN_WAIT, (int64_t[]){call, request, is_certain}, 3, 3);
}

void store_mark(struct store_tables *tables, unsigned thread, int64_t begin_ns, int64_t level,
                const struct mark_name_definition *name)
{
    store_integer(tables, STORE_MARK, COLUMN_MARK_RANK, tables->rank);
    store_integer(tables, STORE_MARK, COLUMN_MARK_THREAD_ID, tables->base.thread + thread);
    store_integer(tables, STORE_MARK, COLUMN_MARK_BEGIN_NS, begin_ns);
    store_integer(tables, STORE_MARK, COLUMN_MARK_LEVEL, level);
    if (name)
        store_text(tables, STORE_MARK, COLUMN_MARK_NAME, name->name, name->head.name_bytes);
    store_run(tables, STORE_MARK);
}

/* The value of a META key; empty when the spool has none. */
static void store_fact(struct store_tables *tables, const struct spool_definitions *definitions, int at, const char *key)
{
    for (uint64_t i = 1; i <= definitions->meta_count; i++) {
        const struct meta_definition *meta = id_table_at(&definitions->metas, i);
        if (meta && spool_meta_is(meta, key)) {
            store_text(tables, STORE_RANK, at, meta->value, meta->head.value_bytes);
            return;
        }
    }
    store_words(tables, STORE_RANK, at, "");
}

/* What is no option: pieces of the spool that could not be read, which are told so from what the disk had no room for, although
 * both are lost_records; and marks that were left out. Nothing where there are none. */
static void store_missing(struct store_tables *tables, const char *what, uint64_t count)
{
    char number[24];
    if (count == 0)
        return;
    snprintf(number, sizeof number, "%llu", (unsigned long long)count);
    store_integer(tables, STORE_OPTION, COLUMN_OPTION_RANK, tables->rank);
    store_words(tables, STORE_OPTION, COLUMN_OPTION_NAME, what);
    store_text(tables, STORE_OPTION, COLUMN_OPTION_VALUE, number, strlen(number));
    store_words(tables, STORE_OPTION, COLUMN_OPTION_SOURCE, "conversion");
    store_run(tables, STORE_OPTION);
}

void store_rank(struct store_tables *tables, const struct spool_definitions *definitions, const struct rank_row *row)
{
    static const char *const ends[] = {
        [SPOOL_OPEN] = "killed", [SPOOL_FINALIZED] = "finalize", [SPOOL_ABORTED] = "abort", [SPOOL_EXITED] = "exit"};
    static const struct {
        int column;
        const char *key;
    } facts[] = {{COLUMN_RANK_COMMAND, "command"},
                 {COLUMN_RANK_EXECUTABLE, "executable"},
                 {COLUMN_RANK_MPI_ABI, "mpi_abi"},
                 {COLUMN_RANK_MPI_LIBRARY, "mpi_library"},
                 {COLUMN_RANK_MPI_STANDARD, "mpi_standard"},
                 {COLUMN_RANK_LAPSCOPE_VERSION, "lapscope_version"},
                 {COLUMN_RANK_JOB, "job"}};
    const struct spool_file_header *header = row->header;
    for (size_t i = 0; i < sizeof facts / sizeof facts[0]; i++)
        store_fact(tables, definitions, facts[i].column, facts[i].key);
    store_integer(tables, STORE_RANK, COLUMN_RANK_RANK, tables->rank);
    store_integer(tables, STORE_RANK, COLUMN_RANK_WORLD, header->world);
    store_integer(tables, STORE_RANK, COLUMN_RANK_WORLD_RANK, header->rank);
    store_integer(tables, STORE_RANK, COLUMN_RANK_LIFE, header->life);
    store_integer(tables, STORE_RANK, COLUMN_RANK_WORLD_SIZE, header->world_size);
    store_text(tables, STORE_RANK, COLUMN_RANK_HOST, header->host, strnlen(header->host, sizeof header->host));
    store_integer(tables, STORE_RANK, COLUMN_RANK_PID, header->pid);
    store_integer(tables, STORE_RANK, COLUMN_RANK_THREAD_LEVEL, header->thread_level);
    store_integer(tables, STORE_RANK, COLUMN_RANK_EPOCH_NS, header->first.monotonic_ns);
    store_integer(tables, STORE_RANK, COLUMN_RANK_EPOCH_UNIX_NS, header->epoch_unix_ns);
    store_words(tables, STORE_RANK, COLUMN_RANK_CLOCK, header->clock == SPOOL_CLOCK_TSC ? "tsc" : "monotonic");
    store_integer(tables, STORE_RANK, COLUMN_RANK_INIT_END_NS, row->init_end_ns);
    store_integer(tables, STORE_RANK, COLUMN_RANK_END_NS, row->end_ns);
    store_words(tables, STORE_RANK, COLUMN_RANK_ENDED, ends[row->end <= SPOOL_EXITED ? row->end : SPOOL_OPEN]);
    store_integer(tables, STORE_RANK, COLUMN_RANK_LOST_RECORDS, (int64_t)header->lost_records + row->damaged);
    store_integer(tables, STORE_RANK, COLUMN_RANK_UNKNOWN_REQUESTS, (int64_t)header->unknown_requests);
    store_integer(tables, STORE_RANK, COLUMN_RANK_SUMMARIZED,
                  header->summarized <= SPOOL_FULL_ASKED ? header->summarized : SPOOL_FULL_MAX_MB);
    store_integer(tables, STORE_RANK, COLUMN_RANK_SPOOL_BYTES, row->spool_bytes);
    store_integer_or_null(tables, STORE_RANK, COLUMN_RANK_GONE_NS, row->gone_ns >= 0, row->gone_ns);
    store_run(tables, STORE_RANK);
    store_missing(tables, "damaged_pieces", (uint64_t)row->damaged);
    store_missing(tables, "lost_marks", header->lost_marks < SPOOL_MOST ? header->lost_marks : SPOOL_MOST);
    store_missing(tables, "cut_paths", header->cut_paths < SPOOL_MOST ? header->cut_paths : SPOOL_MOST);
}
