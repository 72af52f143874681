/* From the records of one spool to the rows of its rank. */
#ifndef LAPSCOPE_CONVERSION_H
#define LAPSCOPE_CONVERSION_H

#include "store.h"
#include "tables.h"

/* How far the conversion of several spools is; bytes. */
struct conversion_progress {
    store_progress *tell;    /* may be NULL */
    void *context;
    uint64_t done_bytes, total_bytes; /* of all spools */
    uint64_t end_bytes;      /* where this one ends among them */
};

/* Puts the rows of a spool behind those that are there. Returns 0, or -1 when out of memory. */
int conversion_of(struct store_tables *tables, struct spool_file *file, struct store_result *result,
                  const struct conversion_progress *progress);

#endif
