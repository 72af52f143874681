#include "store_tables.h"

#include "call.h"
#include "embedded.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const statement_texts[STORE_STATEMENTS] = {
    [STORE_RANK] = "INSERT INTO rank VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
    [STORE_OPTION] = "INSERT OR REPLACE INTO option VALUES(?,?,?,?)",
    [STORE_ENVIRONMENT] = "INSERT OR REPLACE INTO environment VALUES(?,?,?)",
    [STORE_CVAR] = "INSERT OR REPLACE INTO cvar VALUES(?,?,?)",
    [STORE_THREAD] = "INSERT OR REPLACE INTO thread VALUES(?,?,?,?,0,0)",
    [STORE_THREAD_STATE] = "UPDATE thread SET mpi_ns=?2, calls=?3 WHERE id=?1",
    [STORE_CALL_NAME] = "INSERT INTO call_name VALUES(?,?,?,?)",
    [STORE_MODULE] = "INSERT OR REPLACE INTO module VALUES(?,?,?,?,?,?)",
    [STORE_PATH] = "INSERT OR REPLACE INTO call_path VALUES(?,?,?)",
    [STORE_FRAME] = "INSERT OR REPLACE INTO frame VALUES(?,?,?,?)",
    [STORE_COMM] = "INSERT OR REPLACE INTO communicator VALUES(?,?,?,?,?,?,?,?,?)",
    [STORE_MEMBER] = "INSERT OR REPLACE INTO communicator_member VALUES(?,?,?,?)",
    [STORE_OPERATION] = "INSERT INTO operation VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?)",
    [STORE_CALL] = "INSERT INTO call VALUES(?,?,?,?,?,?,?,?)",
    [STORE_REQUEST] = "INSERT INTO request VALUES(?,?,?,?,?,?,?,?,0,NULL,NULL,NULL,NULL,NULL)",
    [STORE_REQUEST_POLLED] = "INSERT INTO request VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
    [STORE_TALLY] = "INSERT INTO tally VALUES(?,?,?,?,?,?,?,?,?,?,?,?)",
};

/* In the order of store_tables.facts. */
static const char *const fact_keys[STORE_FACTS] = {"command",      "executable",       "mpi_abi", "mpi_library",
                                                   "mpi_standard", "lapscope_version", "job"};

/* --- statements --------------------------------------------------------------------------------------------------- */

static void check(struct store_tables *tables, int code)
{
    if (code != SQLITE_OK && code != SQLITE_DONE && !tables->failed)
        tables->failed = code;
}

/* Integers only; the values from `nullable` on are NULL when negative. */
static void insert_integers(struct store_tables *tables, enum store_statement which, const int64_t *values, int count,
                            int nullable)
{
    sqlite3_stmt *statement = tables->statements[which];
    for (int i = 0; i < count; i++) {
        if (i >= nullable && values[i] < 0)
            sqlite3_bind_null(statement, i + 1);
        else
            sqlite3_bind_int64(statement, i + 1, values[i]);
    }
    check(tables, sqlite3_step(statement));
    sqlite3_reset(statement);
}

static void bind_text(struct store_tables *tables, enum store_statement which, int at, const void *text, size_t bytes)
{
    check(tables, sqlite3_bind_text(tables->statements[which], at, text, (int)bytes, SQLITE_TRANSIENT));
}

static void bind_words(struct store_tables *tables, enum store_statement which, int at, const char *text)
{
    bind_text(tables, which, at, text ? text : "", text ? strlen(text) : 0);
}

static void bind_integer(struct store_tables *tables, enum store_statement which, int at, int64_t value)
{
    sqlite3_bind_int64(tables->statements[which], at, value);
}

static void bind_or_null(struct store_tables *tables, enum store_statement which, int at, int known, int64_t value)
{
    if (known)
        bind_integer(tables, which, at, value);
    else
        sqlite3_bind_null(tables->statements[which], at);
}

static void run(struct store_tables *tables, enum store_statement which)
{
    check(tables, sqlite3_step(tables->statements[which]));
    sqlite3_reset(tables->statements[which]);
}

/* --- opening and closing ------------------------------------------------------------------------------------------ */

static void write_call_names(struct store_tables *tables)
{
    for (int i = 0; i < CALL_COUNT; i++) {
        bind_integer(tables, STORE_CALL_NAME, 1, i);
        bind_words(tables, STORE_CALL_NAME, 2, call_names[i]);
        bind_words(tables, STORE_CALL_NAME, 3, call_families[i]);
        bind_words(tables, STORE_CALL_NAME, 4, call_roles[i]);
        run(tables, STORE_CALL_NAME);
    }
}

int store_tables_open(struct store_tables *tables, const char *path, int rank)
{
    memset(tables, 0, sizeof *tables);
    tables->rank = rank;
    tables->call_operations.entry_bytes = tables->request_operations.entry_bytes =
        tables->pending_operations.entry_bytes = sizeof(int64_t);
    check(tables, sqlite3_open_v2(path, &tables->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL));
    /* The file is renamed when it is whole, so a journal would protect nothing. */
    const char *const setup[] = {"PRAGMA page_size=4096; PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF;"
                                 "PRAGMA locking_mode=EXCLUSIVE; PRAGMA cache_size=-4096; BEGIN",
                                 embedded_schema, embedded_views};
    for (size_t i = 0; !tables->failed && i < sizeof setup / sizeof setup[0]; i++)
        check(tables, sqlite3_exec(tables->db, setup[i], NULL, NULL, NULL));
    for (int i = 0; !tables->failed && i < STORE_STATEMENTS; i++)
        check(tables, sqlite3_prepare_v3(tables->db, statement_texts[i], -1, SQLITE_PREPARE_PERSISTENT,
                                         &tables->statements[i], NULL));
    if (!tables->failed)
        write_call_names(tables);
    return tables->failed ? -1 : 0;
}

int store_tables_close(struct store_tables *tables, char *error, size_t error_bytes)
{
    for (int i = 0; i < STORE_STATEMENTS; i++)
        sqlite3_finalize(tables->statements[i]);
    if (!tables->failed)
        check(tables, sqlite3_exec(tables->db, "COMMIT", NULL, NULL, NULL));
    int code = sqlite3_close(tables->db);
    if (!tables->failed)
        check(tables, code);
    if (tables->failed)
        snprintf(error, error_bytes, "the database cannot be written (%s)",
                 tables->failed == SQLITE_FULL ? "the disk is full" : sqlite3_errstr(tables->failed));
    free(tables->call_operations.entries);
    free(tables->request_operations.entries);
    free(tables->pending_operations.entries);
    free(tables->modules);
    for (int i = 0; i < STORE_FACTS; i++)
        free(tables->facts[i]);
    return tables->failed ? -1 : 0;
}

/* --- definitions -------------------------------------------------------------------------------------------------- */

static const char *behind(const char *key, size_t bytes, const char *prefix, size_t *left)
{
    size_t prefix_bytes = strlen(prefix);
    *left = bytes - prefix_bytes;
    return bytes > prefix_bytes && !memcmp(key, prefix, prefix_bytes) ? key + prefix_bytes : NULL;
}

static void store_meta(struct store_tables *tables, const struct spool_view *view)
{
    const char *key = (const char *)view->payload, *value = (const char *)view->payload2, *name;
    size_t key_bytes = view->meta.key_bytes, value_bytes = view->meta.value_bytes, name_bytes;
    enum store_statement which;
    if ((name = behind(key, key_bytes, "option.", &name_bytes)))
        which = STORE_OPTION;
    else if ((name = behind(key, key_bytes, "environment.", &name_bytes)))
        which = STORE_ENVIRONMENT;
    else if ((name = behind(key, key_bytes, "cvar.", &name_bytes)))
        which = STORE_CVAR;
    else {
        for (int i = 0; i < STORE_FACTS; i++)
            if (strlen(fact_keys[i]) == key_bytes && !memcmp(key, fact_keys[i], key_bytes) && !tables->facts[i])
                tables->facts[i] = strndup(value, value_bytes);
        return;
    }
    const char *tab = which == STORE_OPTION ? memchr(value, '\t', value_bytes) : NULL;
    bind_integer(tables, which, 1, tables->rank);
    bind_text(tables, which, 2, name, name_bytes);
    bind_text(tables, which, 3, value, tab ? (size_t)(tab - value) : value_bytes);
    if (which == STORE_OPTION)
        bind_text(tables, which, 4, tab ? tab + 1 : "", tab ? value_bytes - (size_t)(tab + 1 - value) : 0);
    run(tables, which);
}

static void store_module(struct store_tables *tables, const struct spool_view *view)
{
    char hexadecimal[2 * 64 + 1] = "";
    for (unsigned i = 0; i < view->module.build_id_bytes && i < 64; i++)
        snprintf(hexadecimal + 2 * i, 3, "%02x", view->payload2[i]);
    bind_integer(tables, STORE_MODULE, 1, view->module.id);
    bind_integer(tables, STORE_MODULE, 2, tables->rank);
    bind_text(tables, STORE_MODULE, 3, view->payload, view->module.path_bytes);
    bind_words(tables, STORE_MODULE, 4, hexadecimal);
    bind_integer(tables, STORE_MODULE, 5, (int64_t)view->module.base);
    bind_integer(tables, STORE_MODULE, 6, (int64_t)view->module.size);
    run(tables, STORE_MODULE);

    struct store_module *grown = realloc(tables->modules, (tables->module_count + 1) * sizeof *grown);
    if (!grown) {
        check(tables, SQLITE_NOMEM);
        return;
    }
    tables->modules = grown;
    grown[tables->module_count++] = (struct store_module){view->module.begin, view->module.begin + view->module.size,
                                                          view->module.base, view->module.id};
}

static void store_path(struct store_tables *tables, const struct spool_view *view)
{
    insert_integers(tables, STORE_PATH, (int64_t[]){view->path.id, tables->rank, view->path.truncated}, 3, 3);
    for (unsigned depth = 0; depth < view->path.frames; depth++) {
        uint64_t address;
        memcpy(&address, view->payload + depth * sizeof address, sizeof address);
        const struct store_module *module = NULL;
        for (size_t i = tables->module_count; !module && i-- > 0;) /* the latest first: what was there before is gone */
            if (address >= tables->modules[i].begin && address < tables->modules[i].end)
                module = &tables->modules[i];
        bind_integer(tables, STORE_FRAME, 1, view->path.id);
        bind_integer(tables, STORE_FRAME, 2, depth);
        bind_or_null(tables, STORE_FRAME, 3, module != NULL, module ? module->id : 0);
        bind_integer(tables, STORE_FRAME, 4, (int64_t)(address - (module ? module->base : 0)));
        run(tables, STORE_FRAME);
    }
}

static void store_comm(struct store_tables *tables, const struct spool_view *view)
{
    const struct comm_definition comm = {view->comm, view->payload, view->payload2};
    const struct spool_comm *head = &comm.head;
    bind_integer(tables, STORE_COMM, 1, head->id);
    bind_integer(tables, STORE_COMM, 2, tables->rank);
    bind_integer(tables, STORE_COMM, 3, (int64_t)head->identity);
    bind_integer(tables, STORE_COMM, 4, head->ordinal);
    bind_words(tables, STORE_COMM, 5, head->inter ? "inter" : "intra");
    bind_integer(tables, STORE_COMM, 6, head->size);
    bind_integer(tables, STORE_COMM, 7, head->remote_size);
    bind_integer(tables, STORE_COMM, 8, head->comm_rank);
    bind_text(tables, STORE_COMM, 9, comm.name, head->name_bytes);
    run(tables, STORE_COMM);
    for (uint32_t i = 0; head->members != UINT32_MAX && i < head->members; i++) {
        int remote = (int32_t)i >= head->size;
        insert_integers(tables, STORE_MEMBER,
                        (int64_t[]){head->id, remote, remote ? (int32_t)i - head->size : (int32_t)i, spool_member(&comm, i)}, 4,
                        3);
    }
}

void store_definition(struct store_tables *tables, const struct spool_view *view)
{
    switch (view->type) {
    case SPOOL_META:
        store_meta(tables, view);
        break;
    case SPOOL_MODULE:
        store_module(tables, view);
        break;
    case SPOOL_PATH:
        store_path(tables, view);
        break;
    case SPOOL_COMM:
        store_comm(tables, view);
        break;
    case SPOOL_THREAD:
        insert_integers(tables, STORE_THREAD,
                        (int64_t[]){view->thread.number + 1, tables->rank, view->thread.number, view->thread.tid}, 4, 4);
        break;
    default:
        break;
    }
}

/* --- operations --------------------------------------------------------------------------------------------------- */

static const char *const kind_names[] = {
    [SPOOL_OTHER] = "other", [SPOOL_SEND] = "send", [SPOOL_RECV] = "recv", [SPOOL_COLLECTIVE] = "collective"};
static const char *const ended_names[] = {[SPOOL_WAITED] = "waited", [SPOOL_TESTED] = "tested", [SPOOL_FREED] = "freed",
                                          [SPOOL_CANCELLED] = "cancelled", [SPOOL_FAILED] = "failed"};

/* What came of it: a request's outcome, or the operation's own. */
struct came {
    int32_t source, tag;
    uint64_t bytes;
    const char *ended; /* NULL for calls */
};

static int64_t insert_operation(struct store_tables *tables, const struct spool_definitions *definitions,
                                const struct spool_operation *operation, struct came came)
{
    static const struct spool_operation unknown = {.peer = SPOOL_NO_PEER, .tag = SPOOL_NO_TAG};
    operation = operation ? operation : &unknown;
    const struct comm_definition *comm = spool_comm_of(definitions, operation->comm);
    int64_t world = spool_peer_world(comm, operation->kind == SPOOL_RECV ? came.source : operation->peer);
    int64_t id = ++tables->last_operation;
    bind_integer(tables, STORE_OPERATION, 1, id);
    bind_integer(tables, STORE_OPERATION, 2, tables->rank);
    bind_integer(tables, STORE_OPERATION, 3, operation->call);
    bind_or_null(tables, STORE_OPERATION, 4, operation->path != 0, operation->path);
    bind_or_null(tables, STORE_OPERATION, 5, operation->comm != 0, operation->comm);
    bind_words(tables, STORE_OPERATION, 6, kind_names[operation->kind <= SPOOL_COLLECTIVE ? operation->kind : 0]);
    bind_integer(tables, STORE_OPERATION, 7, (int64_t)came.bytes);
    bind_or_null(tables, STORE_OPERATION, 8, world >= 0, world);
    bind_or_null(tables, STORE_OPERATION, 9, came.tag >= 0, came.tag);
    bind_or_null(tables, STORE_OPERATION, 10, operation->peer != SPOOL_NO_PEER, operation->peer);
    bind_or_null(tables, STORE_OPERATION, 11, operation->tag != SPOOL_NO_TAG, operation->tag);
    bind_integer(tables, STORE_OPERATION, 12, (int64_t)operation->bytes);
    if (came.ended)
        bind_words(tables, STORE_OPERATION, 13, came.ended);
    else
        sqlite3_bind_null(tables->statements[STORE_OPERATION], 13);
    run(tables, STORE_OPERATION);
    return id;
}

/* Where the row id of a spool id is kept; NULL when out of memory. */
static int64_t *row_id(struct id_table *table, uint64_t id)
{
    if (id >= table->size) {
        size_t size = table->size ? table->size : 256;
        while (size <= id)
            size *= 2;
        int64_t *grown = realloc(table->entries, size * sizeof *grown);
        if (!grown)
            return NULL;
        memset(grown + table->size, 0, (size - table->size) * sizeof *grown);
        table->entries = grown;
        table->size = size;
    }
    return (int64_t *)table->entries + id;
}

/* A spool id without definition (damage) becomes id 0: one row that says so little. */
static int64_t operation_row(struct store_tables *tables, const struct spool_definitions *definitions, uint64_t operation,
                             struct id_table *rows, const char *ended)
{
    const struct spool_operation *known = spool_operation_of(definitions, operation);
    int64_t *row = row_id(rows, known ? operation : 0);
    if (!row) {
        check(tables, SQLITE_NOMEM);
        return 0;
    }
    if (!*row)
        *row = insert_operation(tables, definitions, known,
                                known ? (struct came){known->source, known->actual_tag, known->actual_bytes, ended}
                                      : (struct came){SPOOL_NO_PEER, SPOOL_NO_TAG, 0, ended});
    return *row;
}

int64_t store_call_operation(struct store_tables *tables, const struct spool_definitions *definitions, uint64_t operation)
{
    return operation_row(tables, definitions, operation, &tables->call_operations, NULL);
}

int64_t store_pending_operation(struct store_tables *tables, const struct spool_definitions *definitions, uint64_t operation)
{
    return operation_row(tables, definitions, operation, &tables->pending_operations, "pending");
}

int64_t store_request_operation(struct store_tables *tables, const struct spool_definitions *definitions, uint64_t outcome)
{
    const struct spool_outcome *known = spool_outcome_of(definitions, outcome);
    int64_t *row = row_id(&tables->request_operations, known ? outcome : 0);
    if (!row) {
        check(tables, SQLITE_NOMEM);
        return 0;
    }
    if (!*row) {
        const struct spool_operation *operation = spool_operation_of(definitions, known ? known->operation : 0);
        const char *ended = known && known->ended >= SPOOL_WAITED && known->ended <= SPOOL_FAILED ? ended_names[known->ended]
                                                                                                   : "failed";
        *row = insert_operation(tables, definitions, operation,
                                known ? (struct came){known->source, known->tag, known->bytes, ended}
                                      : (struct came){SPOOL_NO_PEER, SPOOL_NO_TAG, 0, ended});
    }
    return *row;
}

/* --- rows --------------------------------------------------------------------------------------------------------- */

void store_call(struct store_tables *tables, const struct call_row *row)
{
    const int64_t receive = row->receive_operation ? row->receive_operation : -1;
    insert_integers(tables, STORE_CALL,
                    (int64_t[]){row->id, row->operation, row->thread, row->begin_ns, row->duration_ns, row->cpu_ns,
                                row->completed, receive}, 8, 4);
}

void store_request(struct store_tables *tables, const struct request_row *row)
{
    int64_t completion = row->completion ? row->completion : -1;
    const int64_t values[] = {++tables->last_request, row->operation, completion, row->thread, row->post_begin_ns, row->post_ns,
                              row->mpi_ns, row->outstanding_bytes, row->polls, row->first_poll_ns, row->last_poll_ns,
                              row->last_incomplete_ns, row->first_complete_ns, row->injection_arm};
    int polled = row->polls || row->first_complete_ns >= 0 || row->injection_arm >= 0;
    insert_integers(tables, polled ? STORE_REQUEST_POLLED : STORE_REQUEST, values, polled ? 14 : 8, 2);
}

void store_thread_state(struct store_tables *tables, unsigned thread, int64_t mpi_ns, int64_t calls)
{
    insert_integers(tables, STORE_THREAD_STATE, (int64_t[]){thread + 1, mpi_ns, calls}, 3, 3);
}

void store_tally(struct store_tables *tables, const struct spool_definitions *definitions, unsigned thread,
                 const struct spool_tally *tally)
{
    bind_integer(tables, STORE_TALLY, 1, tables->rank);
    bind_integer(tables, STORE_TALLY, 2, thread);
    bind_integer(tables, STORE_TALLY, 3, tally->call_plus_1 - 1);
    bind_or_null(tables, STORE_TALLY, 4, tally->path != 0, tally->path);
    bind_words(tables, STORE_TALLY, 5, tally->reason ? "summary" : "poll");
    bind_integer(tables, STORE_TALLY, 6, tally->size_class);
    bind_integer(tables, STORE_TALLY, 7, (int64_t)tally->count);
    bind_integer(tables, STORE_TALLY, 8, (int64_t)tally->bytes);
    bind_integer(tables, STORE_TALLY, 9, spool_ns(definitions, tally->inside_ticks));
    bind_integer(tables, STORE_TALLY, 10, spool_ns(definitions, tally->completion_ticks));
    bind_integer(tables, STORE_TALLY, 11, spool_ns(definitions, tally->mpi_ticks));
    bind_integer(tables, STORE_TALLY, 12, spool_ns(definitions, tally->window_ticks));
    run(tables, STORE_TALLY);
}

void store_rank(struct store_tables *tables, const struct rank_row *row)
{
    static const char *const ends[] = {
        [SPOOL_OPEN] = "killed", [SPOOL_FINALIZED] = "finalize", [SPOOL_ABORTED] = "abort", [SPOOL_EXITED] = "exit"};
    const struct spool_file_header *header = row->header;
    char host[sizeof header->host + 1] = "";
    memcpy(host, header->host, sizeof header->host);
    bind_integer(tables, STORE_RANK, 1, header->rank);
    bind_integer(tables, STORE_RANK, 2, header->life);
    bind_integer(tables, STORE_RANK, 3, header->world_size);
    bind_words(tables, STORE_RANK, 4, host);
    bind_integer(tables, STORE_RANK, 5, header->pid);
    for (int i = 0; i < 5; i++) /* command to mpi_standard */
        bind_words(tables, STORE_RANK, 6 + i, tables->facts[i]);
    bind_integer(tables, STORE_RANK, 11, header->thread_level);
    bind_words(tables, STORE_RANK, 12, tables->facts[5]);
    bind_words(tables, STORE_RANK, 13, tables->facts[6]);
    bind_integer(tables, STORE_RANK, 14, header->first.monotonic_ns);
    bind_integer(tables, STORE_RANK, 15, header->epoch_unix_ns);
    bind_words(tables, STORE_RANK, 16, header->clock == SPOOL_CLOCK_TSC ? "tsc" : "monotonic");
    bind_integer(tables, STORE_RANK, 17, row->init_end_ns);
    bind_integer(tables, STORE_RANK, 18, row->end_ns);
    bind_words(tables, STORE_RANK, 19, ends[header->end <= SPOOL_EXITED ? header->end : SPOOL_OPEN]);
    bind_integer(tables, STORE_RANK, 20, (int64_t)header->lost_records + row->damaged);
    bind_integer(tables, STORE_RANK, 21, (int64_t)header->unknown_requests);
    bind_integer(tables, STORE_RANK, 22, header->summarized != 0);
    bind_integer(tables, STORE_RANK, 23, row->spool_bytes);
    run(tables, STORE_RANK);
}
