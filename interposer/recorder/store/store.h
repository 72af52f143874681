/*
 * From a spool to SQLite (schema/tables.def). Used by the recorder at the end of a run and linked into the command line
 * for `lapscope recover`. It prints nothing, changes no process state and leaves no memory behind.
 */
#ifndef LAPSCOPE_STORE_H
#define LAPSCOPE_STORE_H

#include "../spool/reader.h"

struct store_result {
    int32_t rank;
    uint32_t life, end;      /* enum spool_end */
    uint32_t world;
    uint64_t requests;       /* rows, those that never ended included */
    uint64_t calls, pending; /* pending: requests and calls that had not ended */
    uint64_t lost, damaged;  /* records the run could not keep; chunks and records that could not be read */
    uint64_t damaged_at;     /* offset in the spool of the first that could not; valid when damaged is not 0 */
};

/* Called now and then with how far the conversion is, in bytes of the spool. */
typedef void store_progress(void *context, uint64_t done_bytes, uint64_t total_bytes);

/* Converts the spool into a new database, which appears whole or not at all: it is written beside and renamed. The
 * spool is left in place. `progress` may be NULL. Returns 0, or -1 with a sentence in `error`. */
int store_convert(const char *spool_path, const char *database_path, store_progress *progress, void *context,
                  struct store_result *result, char *error, size_t error_bytes);

/* One of several spools that become one database. */
struct store_spool {
    const char *path;
    struct store_result result;
    char error[1024];        /* why it is not in the database, a sentence; empty: it is */
};

/* As store_convert(), of the spools of several ranks: one behind the other, in their order. Those of the first world and life
 * have their ranks as keys when they come first and in order. A spool that cannot be read is left out, and says why. Returns
 * 0 when the database is there. */
int store_convert_all(struct store_spool *spools, size_t count, const char *database_path, store_progress *progress,
                      void *context, char *error, size_t error_bytes);

#endif
