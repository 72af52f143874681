/*
 * Reading a spool (format: schema/spool.h). No length in the file is trusted: a damaged or cut file is read up to the
 * damage, chunk by chunk, and what could not be read is counted.
 */
#ifndef LAPSCOPE_SPOOL_READER_H
#define LAPSCOPE_SPOOL_READER_H

#include "../../schema/spool.h"

#include <stddef.h>

struct spool_file {
    const unsigned char *data;              /* mapped read-only */
    size_t bytes;
    const struct spool_file_header *header;
    uint64_t damaged;                       /* chunks and records that could not be read */
};

/* Returns 0, or -1 with `error` naming the file, what is wrong with it and the way out. */
int spool_file_open(struct spool_file *file, const char *path, char *error, size_t error_bytes);
void spool_file_close(struct spool_file *file);

/* The chunk behind `previous` (NULL: the first); NULL at the end or where the chain of chunks is broken. */
const struct spool_chunk *spool_next_chunk(struct spool_file *file, const struct spool_chunk *previous);

/* One record of a STREAM chunk. */
struct spool_view {
    enum spool_record type;
    union {                                  /* definitions: the packed struct, copied */
        struct spool_meta meta;
        struct spool_module module;
        struct spool_path path;
        struct spool_comm comm;
        struct spool_operation operation;
        struct spool_outcome outcome;
        struct spool_thread thread;
    };
    const unsigned char *payload, *payload2; /* unaligned; lengths as the struct says, within the chunk */
    uint64_t fields[5];                      /* CALL, EXTRA, REQUEST, FOREIGN */
};

struct spool_cursor {
    const unsigned char *at, *end;
};

struct spool_cursor spool_records(const struct spool_chunk *chunk);
/* Returns 1 with the next record, 0 at the end; damage ends the chunk and is counted in `file`. */
int spool_next_record(struct spool_file *file, struct spool_cursor *cursor, struct spool_view *view);

/* Entries of a LIVE chunk; `state` becomes that of the thread when this is its first LIVE chunk, else NULL. */
const struct spool_live *spool_live_entries(const struct spool_chunk *chunk, size_t *count,
                                            const struct spool_thread_state **state);
const struct spool_tally *spool_tally_entries(const struct spool_chunk *chunk, size_t *count);

/* What a spool's header says, for deciding what to do with it. */
struct spool_info {
    int32_t rank;
    uint32_t life, end;                      /* enum spool_end */
    int64_t pid;
    uint64_t pid_start;
    char host[256], boot_id[40];
};
int spool_inspect(const char *path, struct spool_info *info, char *error, size_t error_bytes);

#endif
