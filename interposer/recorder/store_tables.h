/* The tables of schema/schema.sql as the conversion fills them. store_tables.c alone calls SQLite. */
#ifndef LAPSCOPE_STORE_TABLES_H
#define LAPSCOPE_STORE_TABLES_H

#include "spool_definitions.h"

#include <stddef.h>

struct sqlite3;
struct sqlite3_stmt;

enum store_statement {
    STORE_RANK, STORE_OPTION, STORE_ENVIRONMENT, STORE_CVAR, STORE_THREAD, STORE_THREAD_STATE, STORE_CALL_NAME,
    STORE_MODULE, STORE_PATH, STORE_FRAME, STORE_COMM, STORE_MEMBER, STORE_OPERATION, STORE_CALL, STORE_REQUEST,
    STORE_REQUEST_POLLED, STORE_TALLY, STORE_STATEMENTS
};

enum { STORE_FACTS = 7 };     /* META keys that are columns of rank */

struct store_module {
    uint64_t begin, end, base;
    uint32_t id;
};

struct store_tables {
    struct sqlite3 *db;
    struct sqlite3_stmt *statements[STORE_STATEMENTS];
    int rank;
    int failed;               /* SQLite's code of the first failure */
    int64_t last_call, last_request, last_operation;
    struct id_table call_operations, request_operations, pending_operations; /* spool id to row id */
    struct store_module *modules;
    size_t module_count;
    char *facts[STORE_FACTS];
};

struct call_row {
    int64_t id, operation;
    unsigned thread;
    int64_t begin_ns, duration_ns, cpu_ns; /* -1: NULL */
    int64_t completed, receive_operation;  /* 0: none */
};

struct request_row {
    int64_t operation, completion;         /* completion 0: NULL */
    unsigned thread;
    int64_t post_begin_ns, post_ns, mpi_ns, outstanding_bytes, polls;
    int64_t first_poll_ns, last_poll_ns, last_incomplete_ns, first_complete_ns; /* -1: NULL */
    int injection_arm;
};

struct rank_row {
    const struct spool_file_header *header;
    int64_t init_end_ns, end_ns, spool_bytes, damaged;
};

/* Opens an empty database file, makes the schema and begins the transaction. Returns 0, or -1: then store_tables_close
 * says why. */
int store_tables_open(struct store_tables *tables, const char *path, int rank);
/* Commits and closes; returns -1 with a sentence in `error` when anything since open failed. */
int store_tables_close(struct store_tables *tables, char *error, size_t error_bytes);

/* META, MODULE, PATH, COMM and THREAD records; others are passed over. */
void store_definition(struct store_tables *tables, const struct spool_view *view);

/* Row ids of operations, made on first use. */
int64_t store_call_operation(struct store_tables *tables, const struct spool_definitions *definitions, uint64_t operation);
int64_t store_request_operation(struct store_tables *tables, const struct spool_definitions *definitions, uint64_t outcome);
int64_t store_pending_operation(struct store_tables *tables, const struct spool_definitions *definitions, uint64_t operation);

void store_call(struct store_tables *tables, const struct call_row *row);
void store_request(struct store_tables *tables, const struct request_row *row);
void store_thread_state(struct store_tables *tables, unsigned thread, int64_t mpi_ns, int64_t calls);
void store_tally(struct store_tables *tables, const struct spool_definitions *definitions, unsigned thread,
                 const struct spool_tally *tally);
void store_rank(struct store_tables *tables, const struct rank_row *row);

#endif
