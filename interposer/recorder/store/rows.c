/*
 * The rows that there are millions of. Binding, stepping and resetting a prepared INSERT costs more than the insertion,
 * so rows wait in a batch that SQLite reads as a virtual table: INSERT INTO request SELECT ... FROM request_batch.
 * Measured here: 650 ns a row with bound values, 410 with 16 rows a statement, 270 so.
 */
#include "sql.h"

#include <stdlib.h>

enum { BATCH_ROWS = 1024, BATCH_COLUMNS = COLUMNS_OF_REQUEST + 1 };

#define NO_VALUE INT64_MIN /* NULL */

struct store_batch {
    const char *table;       /* as SQL, with the columns from the place `first` on */
    int first;
    int count;
    int extended;            /* some row has values in the columns that are mostly NULL */
    int64_t rows[BATCH_ROWS][BATCH_COLUMNS]; /* a value at the place of its column, from 1 on */
};

/* --- the batch as a virtual table (sqlite.org/vtab.html) ---------------------------------------------------------- */

struct batch_table {
    sqlite3_vtab base;
    const struct store_batch *batch;
};

struct batch_cursor {
    sqlite3_vtab_cursor base;
    const struct store_batch *batch;
    int row;
};

static int connect_table(sqlite3 *db, void *batch, int argc, const char *const *argv, sqlite3_vtab **table, char **error)
{
    (void)argc, (void)argv, (void)error;
    struct batch_table *made = calloc(1, sizeof *made);
    if (!made)
        return SQLITE_NOMEM;
    made->batch = batch;
    *table = &made->base;
    int code = sqlite3_declare_vtab(db, made->batch->table);
    if (code != SQLITE_OK)
        free(made);
    return code;
}

static int disconnect_table(sqlite3_vtab *table)
{
    free(table);
    return SQLITE_OK;
}

static int plan(sqlite3_vtab *table, sqlite3_index_info *info)
{
    (void)table;
    info->estimatedCost = BATCH_ROWS;
    return SQLITE_OK;
}

static int open_cursor(sqlite3_vtab *table, sqlite3_vtab_cursor **cursor)
{
    struct batch_cursor *made = calloc(1, sizeof *made);
    if (!made)
        return SQLITE_NOMEM;
    made->batch = ((struct batch_table *)table)->batch;
    *cursor = &made->base;
    return SQLITE_OK;
}

static int close_cursor(sqlite3_vtab_cursor *cursor)
{
    free(cursor);
    return SQLITE_OK;
}

static int rewind_cursor(sqlite3_vtab_cursor *cursor, int number, const char *name, int argc, sqlite3_value **argv)
{
    (void)number, (void)name, (void)argc, (void)argv;
    ((struct batch_cursor *)cursor)->row = 0;
    return SQLITE_OK;
}

static int next_row(sqlite3_vtab_cursor *cursor)
{
    ((struct batch_cursor *)cursor)->row++;
    return SQLITE_OK;
}

static int at_end(sqlite3_vtab_cursor *cursor)
{
    const struct batch_cursor *at = (struct batch_cursor *)cursor;
    return at->row >= at->batch->count;
}

static int column(sqlite3_vtab_cursor *cursor, sqlite3_context *context, int number)
{
    const struct batch_cursor *at = (struct batch_cursor *)cursor;
    int64_t value = at->batch->rows[at->row][at->batch->first + number];
    if (value != NO_VALUE)
        sqlite3_result_int64(context, value);
    return SQLITE_OK;
}

static int row_number(sqlite3_vtab_cursor *cursor, sqlite3_int64 *number)
{
    *number = ((struct batch_cursor *)cursor)->row;
    return SQLITE_OK;
}

static const sqlite3_module batch_module = {.xConnect = connect_table,
                                            .xBestIndex = plan,
                                            .xDisconnect = disconnect_table,
                                            .xDestroy = disconnect_table,
                                            .xOpen = open_cursor,
                                            .xClose = close_cursor,
                                            .xFilter = rewind_cursor,
                                            .xNext = next_row,
                                            .xEof = at_end,
                                            .xColumn = column,
                                            .xRowid = row_number};

/* --- filling and emptying ----------------------------------------------------------------------------------------- */

static struct store_batch *new_batch(struct store_tables *tables, const char *name, const char *table, int first)
{
    struct store_batch *batch = malloc(sizeof *batch);
    if (!batch) {
        store_check(tables, SQLITE_NOMEM);
        return NULL;
    }
    batch->table = table;
    batch->first = first;
    batch->count = batch->extended = 0;
    store_check(tables, sqlite3_create_module(tables->db, name, &batch_module, batch));
    return batch;
}

#define NEW_BATCH(table, first) new_batch(tables, #table "_batch", "CREATE TABLE batch(" COLUMNS_##table ")", first)

void store_rows_open(struct store_tables *tables)
{
    if (tables->failed)
        return;
    tables->call_batch = NEW_BATCH(call, COLUMN_CALL_OPERATION_ID);
    tables->request_batch = NEW_BATCH(request, COLUMN_REQUEST_OPERATION_ID);
    tables->call_counter_batch = NEW_BATCH(call_counter, 1);
    tables->request_counter_batch = NEW_BATCH(request_counter, 1);
}

static void flush_batch(struct store_tables *tables, struct store_batch *batch, enum store_statement plain,
                        enum store_statement extended)
{
    if (!tables->failed && batch->count)
        store_run(tables, batch->extended ? extended : plain);
    batch->count = batch->extended = 0;
}

static void flush_calls(struct store_tables *tables)
{
    flush_batch(tables, tables->call_batch, STORE_CALLS, STORE_CALLS);
}

static void flush_requests(struct store_tables *tables)
{
    flush_batch(tables, tables->request_batch, STORE_REQUESTS, STORE_REQUESTS_TESTED);
}

void store_rows_flush(struct store_tables *tables)
{
    if (tables->failed)
        return;
    flush_calls(tables);
    flush_requests(tables);
    flush_batch(tables, tables->call_counter_batch, STORE_CALL_COUNTERS, STORE_CALL_COUNTERS);
    flush_batch(tables, tables->request_counter_batch, STORE_REQUEST_COUNTERS, STORE_REQUEST_COUNTERS);
}

void store_rows_close(struct store_tables *tables)
{
    free(tables->call_batch);
    free(tables->request_batch);
    free(tables->call_counter_batch);
    free(tables->request_counter_batch);
}

static inline int64_t or_null(int64_t value)
{
    return value < 0 ? NO_VALUE : value;
}

/* --- rows --------------------------------------------------------------------------------------------------------- */

void store_call(struct store_tables *tables, const struct call_row *row)
{
    struct store_batch *batch = tables->call_batch;
    if (tables->failed)
        return;
    int64_t *values = batch->rows[batch->count++];
    values[COLUMN_CALL_OPERATION_ID] = row->operation;
    values[COLUMN_CALL_THREAD_ID] = tables->base.thread + row->thread;
    values[COLUMN_CALL_BEGIN_NS] = row->begin_ns;
    values[COLUMN_CALL_DURATION_NS] = or_null(row->duration_ns);
    values[COLUMN_CALL_USER_NS] = or_null(row->user_ns);
    values[COLUMN_CALL_SYSTEM_NS] = or_null(row->system_ns);
    values[COLUMN_CALL_COMPLETED] = row->completed;
    values[COLUMN_CALL_RECEIVE_OPERATION_ID] = row->receive_operation ? row->receive_operation : NO_VALUE;
    if (batch->count == BATCH_ROWS)
        flush_calls(tables);
}

void store_request(struct store_tables *tables, const struct request_row *row)
{
    struct store_batch *batch = tables->request_batch;
    if (tables->failed)
        return;
    int64_t *values = batch->rows[batch->count++];
    values[COLUMN_REQUEST_OPERATION_ID] = row->operation;
    values[COLUMN_REQUEST_COMPLETION_ID] = row->completion ? row->completion : NO_VALUE;
    values[COLUMN_REQUEST_THREAD_ID] = tables->base.thread + row->thread;
    values[COLUMN_REQUEST_POST_BEGIN_NS] = row->post_begin_ns;
    values[COLUMN_REQUEST_POST_NS] = row->post_ns;
    values[COLUMN_REQUEST_MPI_NS] = or_null(row->mpi_ns);
    values[COLUMN_REQUEST_OUTSTANDING_BYTES] = row->outstanding_bytes;
    values[COLUMN_REQUEST_UNSUCCESSFUL_TESTS] = row->unsuccessful_tests;
    values[COLUMN_REQUEST_FIRST_UNSUCCESSFUL_TEST_NS] = or_null(row->first_unsuccessful_test_ns);
    values[COLUMN_REQUEST_LAST_UNSUCCESSFUL_TEST_NS] = or_null(row->last_unsuccessful_test_ns);
    values[COLUMN_REQUEST_LAST_INCOMPLETE_NS] = or_null(row->last_incomplete_ns);
    values[COLUMN_REQUEST_FIRST_COMPLETE_NS] = or_null(row->first_complete_ns);
    values[COLUMN_REQUEST_INJECTION_ARM] = or_null(row->injection_arm);
    batch->extended |= row->unsuccessful_tests || row->first_complete_ns >= 0 || row->injection_arm >= 0;
    if (batch->count == BATCH_ROWS)
        flush_requests(tables);
}

static void store_counter(struct store_tables *tables, struct store_batch *batch, enum store_statement statement, int64_t row,
                          unsigned number, int64_t value)
{
    if (tables->failed)
        return;
    int64_t *values = batch->rows[batch->count++];
    values[1] = row;
    values[2] = number;
    values[3] = value;
    if (batch->count == BATCH_ROWS)
        flush_batch(tables, batch, statement, statement);
}

void store_call_counter(struct store_tables *tables, int64_t call, unsigned number, int64_t value)
{
    store_counter(tables, tables->call_counter_batch, STORE_CALL_COUNTERS, call, number, value);
}

void store_request_counter(struct store_tables *tables, int64_t request, unsigned number, int64_t value)
{
    store_counter(tables, tables->request_counter_batch, STORE_REQUEST_COUNTERS, request, number, value);
}
