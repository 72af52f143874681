/*
 * The rows that there are millions of. Binding, stepping and resetting a prepared INSERT costs more than the insertion,
 * so rows wait in a batch that SQLite reads as a virtual table: INSERT INTO request SELECT ... FROM request_batch.
 * Measured here: 650 ns a row with bound values, 410 with 16 rows a statement, 270 so.
 */
#include "sql.h"

#include <stdlib.h>

enum { BATCH_ROWS = 1024, BATCH_COLUMNS = COLUMNS_OF_REQUEST };

struct store_batch {
    const char *table;       /* as SQL */
    uint64_t nullable;       /* bit i: column i may be NULL */
    int count;
    int extended;            /* some row has values in the columns that are mostly NULL */
    int64_t rows[BATCH_ROWS][BATCH_COLUMNS];
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
    int64_t value = at->batch->rows[at->row][number];
    if (value >= 0 || !(at->batch->nullable >> number & 1))
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

static struct store_batch *new_batch(struct store_tables *tables, const char *name, const char *table, uint64_t nullable)
{
    struct store_batch *batch = malloc(sizeof *batch);
    if (!batch) {
        store_check(tables, SQLITE_NOMEM);
        return NULL;
    }
    batch->table = table;
    batch->nullable = nullable;
    batch->count = batch->extended = 0;
    store_check(tables, sqlite3_create_module(tables->db, name, &batch_module, batch));
    return batch;
}

#define NEW_BATCH(table) new_batch(tables, #table "_batch", "CREATE TABLE batch(" COLUMNS_##table ")", NULLABLE_##table)

void store_rows_open(struct store_tables *tables)
{
    if (tables->failed)
        return;
    tables->call_batch = NEW_BATCH(call);
    tables->request_batch = NEW_BATCH(request);
    tables->call_counter_batch = NEW_BATCH(call_counter);
    tables->request_counter_batch = NEW_BATCH(request_counter);
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

/* --- rows --------------------------------------------------------------------------------------------------------- */

void store_call(struct store_tables *tables, const struct call_row *row)
{
    struct store_batch *batch = tables->call_batch;
    if (tables->failed)
        return;
    memcpy(batch->rows[batch->count++], row, sizeof *row);
    if (batch->count == BATCH_ROWS)
        flush_calls(tables);
}

void store_request(struct store_tables *tables, const struct request_row *row)
{
    struct store_batch *batch = tables->request_batch;
    if (tables->failed)
        return;
    memcpy(batch->rows[batch->count++], row, sizeof *row);
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
    values[0] = row;
    values[1] = number;
    values[2] = value;
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
