/*
 * Reading a spool (format: schema/spool.h). Nothing in the file is trusted: every length is checked against what is
 * there. A damaged or cut file is read around the damage, and what could not be read is counted.
 */
#ifndef LAPSCOPE_SPOOL_READER_H
#define LAPSCOPE_SPOOL_READER_H

#include "../../../schema/spool.h"

#include <stddef.h>

/* A chunk, as far as the file holds it. */
struct spool_part {
    const unsigned char *data;  /* behind the chunk's header */
    size_t bytes;               /* STREAM: those in use; else all there are */
    size_t room;                /* to the end of the chunk */
    uint64_t base;
    uint16_t kind, thread;
    uint8_t has_state;
    uint32_t gap;               /* breaks in the chain of chunks before this one */
};

struct spool_file {
    const unsigned char *data;  /* mapped read-only */
    size_t bytes;
    const struct spool_file_header *header;
    struct spool_part *parts;   /* by thread, and within a thread in the order of writing */
    size_t part_count;
    int fd;                     /* while it is opened */
    uint64_t damaged;           /* chunks and records that could not be read */
    uint64_t damaged_at;        /* offset of the first of them; valid when damaged is not 0 */
};

/* Returns 0, or -1 with `error` naming the file, what is wrong with it and the way out. */
int spool_file_open(struct spool_file *file, const char *path, char *error, size_t error_bytes);
void spool_file_close(struct spool_file *file);

/* Counts damage found at a place in the file. */
void spool_file_damaged(struct spool_file *file, const void *at);

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
        struct spool_mark_name mark_name;
        struct spool_watch watch;            /* no definition, but of the same form */
    };
    const unsigned char *payload, *payload2; /* unaligned; lengths as the struct says, within the chunk */
    uint64_t fields[SPOOL_HOT_FIELDS];       /* of records from CALL on */
};

struct spool_cursor {
    const unsigned char *at, *end;
};

struct spool_cursor spool_records(const struct spool_part *part);
/* Returns 1 with the next record, 0 at the end, -1 at damage, which is counted in `file` and ends the chunk. */
int spool_next_record(struct spool_file *file, struct spool_cursor *cursor, struct spool_view *view);
/* Whether records go on behind those that are in use, further than a kill in the middle of writing one explains. */
int spool_goes_on(const struct spool_part *part);
/* Returns 1 with the next definition, passing over the hot records without decoding them; 0 at the end and at damage,
 * which is left to spool_next_record() to count. */
int spool_next_definition(struct spool_cursor *cursor, struct spool_view *view);

/* Entries of a LIVE chunk; `state` becomes that of the thread when this is its first LIVE chunk, else NULL. */
const struct spool_live *spool_live_entries(const struct spool_part *part, size_t *count,
                                            const struct spool_thread_state **state);
const struct spool_tally *spool_tally_entries(const struct spool_part *part, size_t *count);
/* Entries of a DEVICE chunk; `state` is NULL but in the first of them. */
const struct spool_device_busy *spool_device_entries(const struct spool_part *part, size_t *count,
                                                     const struct spool_device_state **state);

/* What a spool's header says, for deciding what to do with it. */
struct spool_info {
    int32_t rank, world_size;
    uint32_t life, end;                      /* enum spool_end */
    int64_t pid;
    uint64_t pid_start;                      /* of the process that wrote it: see struct spool_file_header */
    char host[256], boot_id[40];             /* terminated */
    uint64_t pid_namespace;
    int64_t began_unix_ns;
    char job[256], launch[64];               /* terminated */
};
int spool_inspect(const char *path, struct spool_info *info, char *error, size_t error_bytes);

#endif
