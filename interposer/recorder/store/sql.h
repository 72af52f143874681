/* Prepared statements of the conversion, as the files of this room use them. */
#ifndef LAPSCOPE_STORE_SQL_H
#define LAPSCOPE_STORE_SQL_H

#include "tables.h"

#include <sqlite3.h>
#include <string.h>

/* Remembers the first failure. */
void store_check(struct store_tables *tables, int code);

/* Runs a statement with the values that were bound since it ran last; the others are NULL. */
void store_run(struct store_tables *tables, enum store_statement which);

/* Binds text of any origin; bytes that are not UTF-8 become question marks, for SQLite's text is UTF-8. */
void store_text(struct store_tables *tables, enum store_statement which, int at, const void *text, size_t bytes);

static inline void store_words(struct store_tables *tables, enum store_statement which, int at, const char *text)
{
    store_text(tables, which, at, text, strlen(text));
}

static inline void store_integer(struct store_tables *tables, enum store_statement which, int at, int64_t value)
{
    sqlite3_bind_int64(tables->statements[which], at, value);
}

static inline void store_integer_or_null(struct store_tables *tables, enum store_statement which, int at, int known,
                                         int64_t value)
{
    if (known)
        sqlite3_bind_int64(tables->statements[which], at, value);
}

/* A row of integers; the values from index `nullable` on are NULL when negative. */
static inline void store_integers(struct store_tables *tables, enum store_statement which, const int64_t *values, int count,
                                  int nullable)
{
    for (int i = 0; i < count; i++)
        store_integer_or_null(tables, which, i + 1, i < nullable || values[i] >= 0, values[i]);
    store_run(tables, which);
}

/* rows.c: the rows that wait to be written. */
void store_rows_open(struct store_tables *tables);
void store_rows_flush(struct store_tables *tables);
void store_rows_close(struct store_tables *tables);

#endif
