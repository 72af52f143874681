#include "sql.h"

#include <stdio.h>
#include <stdlib.h>

/* --- what has an id ----------------------------------------------------------------------------------------------- */

static void store_counter_definition(struct store_tables *tables, const struct counter_definition *counter)
{
    store_integer(tables, STORE_COUNTER, COLUMN_COUNTER_RANK, tables->rank);
    store_integer(tables, STORE_COUNTER, COLUMN_COUNTER_NUMBER, counter->number);
    store_text(tables, STORE_COUNTER, COLUMN_COUNTER_NAME, counter->texts[COUNTER_NAME], counter->bytes[COUNTER_NAME]);
    store_text(tables, STORE_COUNTER, COLUMN_COUNTER_DESCRIPTION, counter->texts[COUNTER_DESCRIPTION],
               counter->bytes[COUNTER_DESCRIPTION]);
    store_text(tables, STORE_COUNTER, COLUMN_COUNTER_UNIT, counter->texts[COUNTER_UNIT], counter->bytes[COUNTER_UNIT]);
    if (counter->bytes[COUNTER_PROBLEM])
        store_text(tables, STORE_COUNTER, COLUMN_COUNTER_PROBLEM, counter->texts[COUNTER_PROBLEM],
                   counter->bytes[COUNTER_PROBLEM]);
    store_run(tables, STORE_COUNTER);
}

/* What was counted in the whole run; what is no number is no row. */
static void store_counter_sum(struct store_tables *tables, const struct meta_definition *meta, const char *key, size_t key_bytes)
{
    char number[4] = "", value[24] = "", *number_end, *value_end;
    if (key_bytes >= sizeof number || meta->head.value_bytes >= sizeof value)
        return;
    memcpy(number, key, key_bytes);
    memcpy(value, meta->value, meta->head.value_bytes);
    long of = strtol(number, &number_end, 10);
    long long outside = strtoll(value, &value_end, 10);
    if (*number_end || *value_end || value_end == value || of < 0 || of >= SPOOL_MAX_COUNTERS)
        return;
    store_integers(tables, STORE_COUNTER_SUM, (int64_t[]){tables->rank, of, outside}, 3, 3);
}

/* The number that a field of a META value holds; -1 where it holds none that a column can. */
static int64_t field_number(const char *text, size_t bytes)
{
    char number[24] = "";
    if (bytes == 0 || bytes >= sizeof number)
        return -1;
    memcpy(number, text, bytes);
    int64_t value = atoll(number);
    return value <= SPOOL_LONGEST_NS ? value : -1;
}

/* Numbers. Older recorders say nothing of the last. */
static void store_processor(struct store_tables *tables, const struct meta_definition *meta)
{
    enum { PEAK_MEMORY = 6, FIELDS };
    const char *texts[FIELDS];
    size_t bytes[FIELDS];
    spool_meta_fields(meta, texts, bytes, FIELDS);
    store_integer(tables, STORE_PROCESSOR, COLUMN_PROCESSOR_RANK, tables->rank);
    for (int i = 0; i < FIELDS; i++) {
        int64_t value = field_number(texts[i], bytes[i]);
        store_integer_or_null(tables, STORE_PROCESSOR, i + 2, value > 0 || i != PEAK_MEMORY, value > 0 ? value : 0);
    }
    store_run(tables, STORE_PROCESSOR);
}

/* "mode problem clock" and then numbers. */
static void store_injector(struct store_tables *tables, const struct meta_definition *meta)
{
    enum { TEXTS = 3, FIELDS = 8 };
    const char *texts[FIELDS];
    size_t bytes[FIELDS];
    spool_meta_fields(meta, texts, bytes, FIELDS);
    store_integer(tables, STORE_INJECTOR, COLUMN_INJECTOR_RANK, tables->rank);
    for (int i = 0; i < FIELDS; i++) {
        if (i < TEXTS && (bytes[i] || i == 0)) {
            store_text(tables, STORE_INJECTOR, i + 2, texts[i], bytes[i]);
            continue;
        }
        int64_t value = field_number(texts[i], bytes[i]);
        store_integer_or_null(tables, STORE_INJECTOR, i + 2, i >= TEXTS && (value >= 0 || i == FIELDS - 1),
                              value > 0 ? value : 0);
    }
    store_run(tables, STORE_INJECTOR);
}

/* "problem", which there may be none of, and then numbers: those of `never_missing` (a bit for each field) are 0 where they are
 * not known, the others NULL. */
static void store_sums(struct store_tables *tables, enum store_statement which, const struct meta_definition *meta, int fields,
                       unsigned never_missing)
{
    enum { PROBLEM, FIRST_NUMBER, MOST_FIELDS = 16 };
    const char *texts[MOST_FIELDS];
    size_t bytes[MOST_FIELDS];
    spool_meta_fields(meta, texts, bytes, (unsigned)fields);
    store_integer(tables, which, 1, tables->rank);
    if (bytes[PROBLEM])
        store_text(tables, which, 2, texts[PROBLEM], bytes[PROBLEM]);
    for (int i = FIRST_NUMBER; i < fields; i++) {
        int64_t value = field_number(texts[i], bytes[i]);
        store_integer_or_null(tables, which, i + 2, value >= 0 || never_missing >> i & 1, value > 0 ? value : 0);
    }
    store_run(tables, which);
}

/* What there may be none of is the slot. */
static void store_copied_sends(struct store_tables *tables, const struct meta_definition *meta)
{
    enum { PROBLEM, SLOT, FIELDS = 11 };
    store_sums(tables, STORE_COPIED_SENDS, meta, FIELDS, ~(1U << SLOT));
}

static void store_watcher(struct store_tables *tables, const struct meta_definition *meta)
{
    enum { PROBLEM, WORDS, HIT, SET, SPENT, OTHER, FIELDS };
    store_sums(tables, STORE_WATCHER, meta, FIELDS, 1U << WORDS | 1U << SPENT);
}

static void store_sampler(struct store_tables *tables, const struct meta_definition *meta)
{
    enum { PROBLEM, BY_SIGNAL, RATE, OTHERS, LOST, LEFT_OUT, FIELDS };
    store_sums(tables, STORE_SAMPLER, meta, FIELDS, ~0U);
}

static void store_watch_left_out(struct store_tables *tables, const struct meta_definition *meta, const char *reason, size_t bytes)
{
    int64_t buffers = field_number((const char *)meta->value, meta->head.value_bytes);
    if (buffers < 0 || buffers > (int64_t)SPOOL_MOST)
        return;
    store_integer(tables, STORE_WATCH_LEFT_OUT, COLUMN_WATCH_LEFT_OUT_RANK, tables->rank);
    store_text(tables, STORE_WATCH_LEFT_OUT, COLUMN_WATCH_LEFT_OUT_REASON, reason, bytes);
    store_integer(tables, STORE_WATCH_LEFT_OUT, COLUMN_WATCH_LEFT_OUT_BUFFERS, buffers);
    store_run(tables, STORE_WATCH_LEFT_OUT);
}

static void store_meta(struct store_tables *tables, const struct meta_definition *meta)
{
    const char *value = (const char *)meta->value, *name;
    size_t value_bytes = meta->head.value_bytes, name_bytes;
    enum store_statement which = STORE_OPTION;
    struct counter_definition counter;
    if (spool_counter(meta, &counter)) {
        store_counter_definition(tables, &counter);
        return;
    }
    if (spool_meta_is(meta, "processor")) {
        store_processor(tables, meta);
        return;
    }
    if (spool_meta_is(meta, "injector")) {
        store_injector(tables, meta);
        return;
    }
    if (spool_meta_is(meta, "auto")) { /* stands behind "injector" */
        store_integer(tables, STORE_AUTOMATIC, 1, tables->rank);
        store_text(tables, STORE_AUTOMATIC, 2, value, value_bytes);
        store_run(tables, STORE_AUTOMATIC);
        return;
    }
    if (spool_meta_is(meta, "copied_sends")) {
        store_copied_sends(tables, meta);
        return;
    }
    if (spool_meta_is(meta, "watcher")) {
        store_watcher(tables, meta);
        return;
    }
    if (spool_meta_is(meta, "sampler")) {
        store_sampler(tables, meta);
        return;
    }
    if ((name = spool_meta_behind(meta, "counted.", &name_bytes))) {
        store_counter_sum(tables, meta, name, name_bytes);
        return;
    }
    if ((name = spool_meta_behind(meta, "left_out.", &name_bytes))) {
        store_watch_left_out(tables, meta, name, name_bytes);
        return;
    }
    if ((name = spool_meta_behind(meta, "environment.", &name_bytes)))
        which = STORE_ENVIRONMENT;
    else if ((name = spool_meta_behind(meta, "cvar.", &name_bytes)))
        which = STORE_CVAR;
    else if (!(name = spool_meta_behind(meta, "option.", &name_bytes)))
        return; /* a column of rank */
    const char *tab = which == STORE_OPTION ? memchr(value, '\t', value_bytes) : NULL;
    size_t before_tab = tab ? (size_t)(tab - value) : value_bytes;
    store_integer(tables, which, 1, tables->rank);
    store_text(tables, which, 2, name, name_bytes);
    store_text(tables, which, 3, value, before_tab);
    if (which == STORE_OPTION)
        store_text(tables, which, 4, tab ? tab + 1 : "", tab ? value_bytes - before_tab - 1 : 0);
    store_run(tables, which);
}

static void store_module(struct store_tables *tables, const struct module_definition *module)
{
    char hexadecimal[2 * 64 + 1] = "";
    int is_python = module->head.begin >> 63 != 0; /* a Python function: its build id is text */
    for (unsigned i = 0; !is_python && i < module->head.build_id_bytes && i < 64; i++)
        snprintf(hexadecimal + 2 * i, 3, "%02x", module->build_id[i]);
    store_integer(tables, STORE_MODULE, COLUMN_MODULE_ID, tables->base.module + module->head.id);
    store_integer(tables, STORE_MODULE, COLUMN_MODULE_RANK, tables->rank);
    store_text(tables, STORE_MODULE, COLUMN_MODULE_PATH, module->path, module->head.path_bytes);
    if (is_python)
        store_text(tables, STORE_MODULE, COLUMN_MODULE_BUILD_ID, module->build_id, module->head.build_id_bytes);
    else
        store_words(tables, STORE_MODULE, COLUMN_MODULE_BUILD_ID, hexadecimal);
    store_integer(tables, STORE_MODULE, COLUMN_MODULE_BASE, (int64_t)module->head.base);
    store_integer(tables, STORE_MODULE, COLUMN_MODULE_SIZE, (int64_t)module->head.size);
    store_run(tables, STORE_MODULE);
}

/* Where modules overlap, one was unloaded before the other was loaded: the later is the better guess. */
static const struct module_definition *module_holding(const struct spool_definitions *definitions, uint64_t address)
{
    for (uint64_t id = definitions->modules.size; id-- > 1;) {
        const struct module_definition *module = id_table_at(&definitions->modules, id);
        if (module->head.id && address - module->head.begin < module->head.size)
            return module;
    }
    return NULL;
}

static void store_path(struct store_tables *tables, const struct spool_definitions *definitions,
                       const struct path_definition *path)
{
    int64_t id = tables->base.path + path->head.id;
    store_integers(tables, STORE_PATH, (int64_t[]){id, tables->rank, path->head.truncated != 0}, 3, 3);
    for (unsigned depth = 0; depth < path->head.frames && !tables->failed; depth++) {
        uint64_t address;
        memcpy(&address, path->frames + depth * sizeof address, sizeof address);
        const struct module_definition *module = module_holding(definitions, address);
        store_integer(tables, STORE_FRAME, COLUMN_FRAME_CALL_PATH_ID, id);
        store_integer(tables, STORE_FRAME, COLUMN_FRAME_DEPTH, depth);
        store_integer_or_null(tables, STORE_FRAME, COLUMN_FRAME_MODULE_ID, module != NULL,
                              module ? tables->base.module + module->head.id : 0);
        store_integer(tables, STORE_FRAME, COLUMN_FRAME_ADDRESS, (int64_t)(address - (module ? module->head.base : 0)));
        store_run(tables, STORE_FRAME);
    }
}

static void store_comm(struct store_tables *tables, const struct comm_definition *comm)
{
    const struct spool_comm *head = &comm->head;
    int64_t id = tables->base.comm + head->id;
    store_integer(tables, STORE_COMM, COLUMN_COMMUNICATOR_ID, id);
    store_integer(tables, STORE_COMM, COLUMN_COMMUNICATOR_RANK, tables->rank);
    store_integer(tables, STORE_COMM, COLUMN_COMMUNICATOR_IDENTITY, (int64_t)head->identity);
    store_integer(tables, STORE_COMM, COLUMN_COMMUNICATOR_ORDINAL, head->ordinal);
    store_words(tables, STORE_COMM, COLUMN_COMMUNICATOR_KIND, head->inter ? "inter" : "intra");
    store_integer(tables, STORE_COMM, COLUMN_COMMUNICATOR_SIZE, head->size);
    store_integer(tables, STORE_COMM, COLUMN_COMMUNICATOR_REMOTE_SIZE, head->remote_size);
    store_integer(tables, STORE_COMM, COLUMN_COMMUNICATOR_COMM_RANK, head->comm_rank);
    store_text(tables, STORE_COMM, COLUMN_COMMUNICATOR_NAME, comm->name, head->name_bytes);
    store_run(tables, STORE_COMM);
    for (uint32_t i = 0; head->members != UINT32_MAX && i < head->members && !tables->failed; i++) {
        int remote = i >= (uint32_t)head->size;
        store_integers(tables, STORE_MEMBER,
                       (int64_t[]){id, remote, i - (remote ? (uint32_t)head->size : 0), spool_member(comm, i)}, 4, 3);
    }
}

static void store_thread(struct store_tables *tables, const struct spool_definitions *definitions, uint64_t id)
{
    const struct thread_definition *thread = id_table_at(&definitions->threads, id);
    if (thread->known)
        store_integers(tables, STORE_THREAD,
                       (int64_t[]){tables->base.thread + (int64_t)id, tables->rank, (int64_t)id - 1, thread->tid,
                                   spool_ns(definitions, thread->mpi_ticks), (int64_t)thread->calls}, 6, 6);
}

void store_definitions(struct store_tables *tables, const struct spool_definitions *definitions)
{
    for (uint64_t i = 1; i <= definitions->meta_count && i < definitions->metas.size && !tables->failed; i++)
        store_meta(tables, id_table_at(&definitions->metas, i));
    for (uint64_t id = 1; id < definitions->modules.size && !tables->failed; id++) {
        const struct module_definition *module = id_table_at(&definitions->modules, id);
        if (module->head.id)
            store_module(tables, module);
    }
    for (uint64_t id = 1; id < definitions->comms.size && !tables->failed; id++)
        if (spool_comm_of(definitions, id))
            store_comm(tables, spool_comm_of(definitions, id));
    for (uint64_t id = 1; id < definitions->paths.size && !tables->failed; id++)
        if (spool_has_path(definitions, id))
            store_path(tables, definitions, id_table_at(&definitions->paths, id));
    for (uint64_t id = 1; id < definitions->threads.size && !tables->failed; id++)
        store_thread(tables, definitions, id);
}

/* --- operations --------------------------------------------------------------------------------------------------- */

static const char *const kind_names[] = {
    [SPOOL_OTHER] = "other", [SPOOL_SEND] = "send", [SPOOL_RECV] = "recv", [SPOOL_COLLECTIVE] = "collective",
    [SPOOL_RMA] = "rma",     [SPOOL_IO] = "io",     [SPOOL_GENERALIZED] = "generalized"};
static const char *const ended_names[] = {[SPOOL_WAITED] = "waited", [SPOOL_TESTED] = "tested", [SPOOL_FREED] = "freed",
                                          [SPOOL_CANCELLED] = "cancelled", [SPOOL_FAILED] = "failed"};

/* What came of it: a request's outcome, or the operation's own. */
struct came {
    int32_t source, tag;
    uint64_t bytes;
    const char *ended; /* NULL for calls */
    uint32_t receive;  /* operation of the receiving half; 0: none */
};

static int64_t related_row(struct store_tables *tables, const struct spool_definitions *definitions, uint32_t related,
                           uint32_t operation);

static int64_t insert_operation(struct store_tables *tables, const struct spool_definitions *definitions,
                                const struct spool_operation *operation, struct came came)
{
    const struct comm_definition *comm = spool_comm_of(definitions, operation->comm);
    int64_t world = spool_peer_world(comm, operation->kind == SPOOL_RECV ? came.source : operation->peer);
    if (operation->peer == SPOOL_ROOT)
        world = tables->world_rank;
    int64_t init = related_row(tables, definitions, operation->init_operation, operation->id);
    int64_t receive = related_row(tables, definitions, came.receive, operation->id);
    int64_t id = ++tables->last_operation;
    store_integer(tables, STORE_OPERATION, COLUMN_OPERATION_ID, id);
    store_integer(tables, STORE_OPERATION, COLUMN_OPERATION_RANK, tables->rank);
    store_integer(tables, STORE_OPERATION, COLUMN_OPERATION_CALL_ID, operation->call);
    store_integer_or_null(tables, STORE_OPERATION, COLUMN_OPERATION_CALL_PATH_ID, spool_has_path(definitions, operation->path),
                          tables->base.path + operation->path);
    store_integer_or_null(tables, STORE_OPERATION, COLUMN_OPERATION_COMMUNICATOR_ID, comm != NULL,
                          tables->base.comm + operation->comm);
    store_words(tables, STORE_OPERATION, COLUMN_OPERATION_KIND,
                kind_names[operation->kind <= SPOOL_GENERALIZED ? operation->kind : SPOOL_OTHER]);
    store_integer(tables, STORE_OPERATION, COLUMN_OPERATION_BYTES, (int64_t)came.bytes);
    store_integer_or_null(tables, STORE_OPERATION, COLUMN_OPERATION_PEER, world >= 0, world);
    store_integer_or_null(tables, STORE_OPERATION, COLUMN_OPERATION_TAG, came.tag >= 0, came.tag);
    store_integer_or_null(tables, STORE_OPERATION, COLUMN_OPERATION_POSTED_PEER, operation->peer >= SPOOL_PROC_NULL,
                          operation->peer);
    store_integer_or_null(tables, STORE_OPERATION, COLUMN_OPERATION_POSTED_TAG, operation->tag != SPOOL_NO_TAG, operation->tag);
    store_integer(tables, STORE_OPERATION, COLUMN_OPERATION_POSTED_BYTES, (int64_t)operation->bytes);
    if (came.ended)
        store_words(tables, STORE_OPERATION, COLUMN_OPERATION_ENDED, came.ended);
    store_integer_or_null(tables, STORE_OPERATION, COLUMN_OPERATION_INIT_OPERATION_ID, init != 0, init);
    store_integer_or_null(tables, STORE_OPERATION, COLUMN_OPERATION_RECEIVE_OPERATION_ID, receive != 0, receive);
    store_run(tables, STORE_OPERATION);
    return id;
}

/* Where the row id of a spool id is kept; NULL when out of memory. */
static int64_t *row_id(struct store_tables *tables, struct id_table *table, uint64_t id)
{
    int64_t *row = id_table_make(table, id);
    if (!row)
        store_check(tables, SQLITE_NOMEM);
    return row;
}

static int64_t operation_row(struct store_tables *tables, const struct spool_definitions *definitions, uint64_t operation,
                             struct id_table *rows, const char *ended)
{
    const int64_t *known_row = id_table_at(rows, operation);
    if (known_row && *known_row)
        return *known_row;
    const struct spool_operation *known = spool_operation_of(definitions, operation);
    int64_t *row = known ? row_id(tables, rows, operation) : NULL;
    if (!row)
        return 0;
    return *row = insert_operation(tables, definitions, known,
                                   (struct came){known->source, known->actual_tag, known->actual_bytes, ended,
                                                 known->receive_operation});
}

int64_t store_call_operation(struct store_tables *tables, const struct spool_definitions *definitions, uint64_t operation)
{
    return operation_row(tables, definitions, operation, &tables->call_operations, NULL);
}

/* The row of the operation that another one speaks of, which speaks of no further one itself; 0: none. */
static int64_t related_row(struct store_tables *tables, const struct spool_definitions *definitions, uint32_t related,
                           uint32_t operation)
{
    const struct spool_operation *known = related && related != operation ? spool_operation_of(definitions, related) : NULL;
    if (!known || known->init_operation || known->receive_operation)
        return 0;
    return store_call_operation(tables, definitions, related);
}

int64_t store_pending_operation(struct store_tables *tables, const struct spool_definitions *definitions,
                                uint64_t operation)
{
    return operation_row(tables, definitions, operation, &tables->pending_operations, "pending");
}

int64_t store_request_operation(struct store_tables *tables, const struct spool_definitions *definitions, uint64_t outcome)
{
    const int64_t *known_row = id_table_at(&tables->request_operations, outcome);
    if (known_row && *known_row)
        return *known_row;
    const struct spool_outcome *known = spool_outcome_of(definitions, outcome);
    const struct spool_operation *operation = known ? spool_operation_of(definitions, known->operation) : NULL;
    int64_t *row = operation ? row_id(tables, &tables->request_operations, outcome) : NULL;
    if (!row)
        return 0;
    int ended = known->ended >= SPOOL_WAITED && known->ended <= SPOOL_FAILED ? known->ended : SPOOL_FAILED;
    return *row = insert_operation(tables, definitions, operation,
                                   (struct came){known->source, known->tag, known->bytes, ended_names[ended],
                                                 known->receive_operation});
}
