/* The tables of schema/tables.def as the conversion fills them. Only store_*.c know SQLite. */
#ifndef LAPSCOPE_STORE_TABLES_H
#define LAPSCOPE_STORE_TABLES_H

#include "../spool/definitions.h"

#include <stddef.h>
#include <stdint.h>

#include "columns.inc"

struct sqlite3;
struct sqlite3_stmt;
struct store_batch;

enum store_statement {
    STORE_RANK, STORE_PROCESSOR, STORE_STARVATION, STORE_OPTION, STORE_ENVIRONMENT, STORE_CVAR, STORE_THREAD, STORE_CALL_NAME, STORE_MODULE, STORE_PATH,
    STORE_FRAME, STORE_COMM, STORE_MEMBER, STORE_OPERATION, STORE_CALLS, STORE_REQUESTS, STORE_REQUESTS_TESTED,
    STORE_COUNTER, STORE_CALL_COUNTERS, STORE_REQUEST_COUNTERS, STORE_TALLY, STORE_COPIED_SENDS, STORE_INJECTOR, STORE_AUTOMATIC, STORE_INJECTION,
    STORE_WATCHER, STORE_WATCH_LEFT_OUT, STORE_WATCH, STORE_SAMPLER, STORE_SAMPLE, STORE_SAMPLE_POST, STORE_COUNTER_SUM, STORE_DETAIL, STORE_LEFT_OUT, STORE_MARK, STORE_OPEN_WAIT, STORE_REQUEST_MEMORY, STORE_DEVICE_RECORDER, STORE_DEVICE_BUSY,
    STORE_STATEMENTS
};

/* What the ranks that are in the database already have used of its ids. */
struct store_base {
    int64_t thread, module, path, comm, call, request;
};

struct store_tables {
    struct sqlite3 *db;
    struct sqlite3_stmt *statements[STORE_STATEMENTS];
    int64_t rank;             /* its key; see store_rank_begin() */
    int64_t free_key;
    int world_rank;
    struct store_base base;
    int failed;               /* SQLite's code of the first failure */
    char trouble[160];        /* what SQLite said of it */
    int64_t last_operation, last_sample;
    struct store_batch *call_batch, *request_batch, *call_counter_batch, *request_counter_batch;
    struct id_table call_operations, request_operations, pending_operations; /* spool id to row id */
};

struct rank_row {
    const struct spool_file_header *header;
    uint32_t end;            /* enum spool_end */
    int64_t init_end_ns, end_ns, spool_bytes, damaged;
    int64_t gone_ns;         /* -1: NULL */
};

/* Opens an empty database file, makes the schema and begins the transaction. Failures are remembered in `failed`, after
 * which the other functions do nothing of use; store_tables_close() reports them. */
void store_tables_open(struct store_tables *tables, const char *path);
/* Commits and closes. Returns -1 with a sentence in `error` when anything failed since the opening. */
int store_tables_close(struct store_tables *tables, const char *path, char *error, size_t error_bytes);

/* Rows from here on are of the rank that a spool's header tells of. Its key is its number, where that is larger than all keys
 * so far and it is of the first world and life; else one behind them. */
void store_rank_begin(struct store_tables *tables, const struct spool_file_header *header);
/* Ids of the next rank begin behind those of this one. */
void store_rank_end(struct store_tables *tables, const struct spool_definitions *definitions, int64_t calls, int64_t requests);

/* Everything that has an id, but operations. Ids of spools count from 1 in each; those of rows go on from rank to rank. */
void store_definitions(struct store_tables *tables, const struct spool_definitions *definitions);

/* Row ids of operations, made on first use; 0 when the spool does not define it. */
int64_t store_call_operation(struct store_tables *tables, const struct spool_definitions *definitions, uint64_t operation);
int64_t store_request_operation(struct store_tables *tables, const struct spool_definitions *definitions, uint64_t outcome);
int64_t store_pending_operation(struct store_tables *tables, const struct spool_definitions *definitions,
                                uint64_t operation);

/* Rows get the ids 1, 2, ... in the order of these calls. What is negative is NULL, in columns that may be. */
void store_call(struct store_tables *tables, const struct call_row *row);
void store_request(struct store_tables *tables, const struct request_row *row);
/* Values of counters, in the order of rows. */
void store_call_counter(struct store_tables *tables, int64_t call, unsigned number, int64_t value);
void store_request_counter(struct store_tables *tables, int64_t request, unsigned number, int64_t value);
/* A row of request_memory. */
void store_request_memory(struct store_tables *tables, int64_t request, enum spool_data_memory memory);
/* A row of starvation. */
void store_starvation(struct store_tables *tables, int64_t begin_ns, int64_t end_ns, int64_t wait_ns);

/* Rows of device_recorder and device_busy; `work` is a number of enum lapscope_device_work, below STORE_DEVICE_WORKS. */
enum { STORE_DEVICE_WORKS = 4 };
void store_device_recorder(struct store_tables *tables, const struct spool_device_state *state);
void store_device_busy(struct store_tables *tables, int64_t device, unsigned work, int64_t begin_ns, int64_t end_ns, int64_t busy_ns);

/* Rows of detail and left_out. */
void store_detail(struct store_tables *tables, int64_t slot, int64_t stage, int64_t begin_ns, int64_t end_ns, int is_cut);
void store_left_out(struct store_tables *tables, int64_t operation, int64_t count, int64_t begin_ns, int64_t end_ns);

/* A row of open_wait, of ids of rows. */
void store_open_wait(struct store_tables *tables, int64_t call, int64_t request, int is_certain);

/* A row of mark; `name` may be NULL. */
void store_mark(struct store_tables *tables, unsigned thread, int64_t begin_ns, int64_t level,
                const struct mark_name_definition *name);

/* A row of watch; returns 0 when it speaks of what the spool does not define. */
int store_watch(struct store_tables *tables, const struct spool_definitions *definitions, unsigned thread,
                const struct spool_watch *watch);

/* A row of what an entry of a TALLY chunk is; returns 0 when it speaks of what the spool does not define, or cannot be. */
int store_entry(struct store_tables *tables, const struct spool_definitions *definitions, unsigned thread,
                const struct spool_tally *tally);
void store_rank(struct store_tables *tables, const struct spool_definitions *definitions, const struct rank_row *row);

#endif
