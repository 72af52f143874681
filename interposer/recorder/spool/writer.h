/*
 * Writing the spool (format: schema/spool.h). The file's own functions are slow paths; what a thread does for each
 * record is inline and touches only that thread's chunks.
 */
#ifndef LAPSCOPE_SPOOL_WRITER_H
#define LAPSCOPE_SPOOL_WRITER_H

#include "../../../schema/spool.h"
#include "codec.h"

#include <stddef.h>

struct spool_identity {
    int rank, world_size, thread_level;
    unsigned world, life;
    const char *job, *launch;      /* see struct job; NULL: none */
    struct spool_clock_pair first; /* when recording began */
    int64_t epoch_unix_ns;         /* CLOCK_REALTIME then */
    uint64_t init_end;             /* ticks */
};

/* Creates `path` (it must not exist) and maps its header. Returns 0, or an errno value. */
int spool_create(const char *path, uint64_t max_bytes, const struct spool_identity *identity);

/* Memory that has a descriptor and no name. */
struct spool_memory {
    int fd;
    uint64_t offset, bytes;        /* the part of it that is meant */
    unsigned char *mapped;         /* all of that part, where it is mapped: then the descriptor is not needed */
};

/* So many bytes, all zero, of which those that are written take room; goes with the last process that has it. A descriptor of ours, or
 * -1 with errno. */
int spool_memory_open(uint64_t bytes);

/* The same as spool_create in memory: that which is given, or NULL: what goes with this process. */
int spool_create_in_memory(const struct spool_memory *given, uint64_t max_bytes, const struct spool_identity *identity);
/* The file's header while it is open, else NULL. */
struct spool_file_header *spool_header(void);

/* A fresh chunk of `bytes` (rounded up), its blocks reserved on the disk so that no later store can fail. NULL when
 * the disk is full or, unless `exempt`, LAPSCOPE_MAX_MB is reached. */
struct spool_chunk *spool_new_chunk(enum spool_chunk_kind kind, unsigned thread, uint64_t bytes, uint64_t base, int exempt);
/* The same for a thread's first LIVE chunk. */
struct spool_chunk *spool_new_state_chunk(unsigned thread, uint64_t bytes);

/* The same for the first DEVICE chunk. */
struct spool_chunk *spool_new_device_chunk(uint64_t bytes);

/* Told of the size of the spool whenever it has grown, and with UINT64_MAX when LAPSCOPE_MAX_MB leaves no room; NULL: nobody. */
extern void (*spool_grown)(uint64_t bytes);

/* How much definitions may still tell apart: everything until they take a quarter of LAPSCOPE_MAX_MB, then less in three steps
 * of a sixteenth each. */
enum spool_detail { SPOOL_DEFINE_ALL, SPOOL_DEFINE_FEWER, SPOOL_DEFINE_FEW, SPOOL_DEFINE_LEAST };
enum spool_detail spool_definition_detail(void);

/* Whether the file has a name no more. */
int spool_is_removed(void);

/* Refreshes the header's clock pair when the last one is old; cheap enough for slow paths. */
void spool_refresh_clock(void);

/* Writes the end into the header, cuts what was reserved but not used, unmaps nothing (threads may still hold chunks).
 */
void spool_finish(enum spool_end end);

/* Writes the end into the header of a process that ends at once; takes no lock, as it may end in a signal handler. */
void spool_left(enum spool_end end);

/* --- a thread's stream --- */

struct spool_stream {
    unsigned char *at;       /* next free byte */
    unsigned char *end;
    struct spool_chunk *chunk;
    uint64_t last_begin;     /* of the last CALL in this chunk */
    uint64_t next_bytes;     /* size of the next chunk */
    unsigned thread;
    int full;                /* the disk took no more, or none are wanted: records become summaries */
};

enum { SPOOL_RECORD_ROOM = 128 }; /* more than any hot record, and what spool_put may scribble behind it */

/* Makes room for `bytes` by taking a new chunk; 0 when there is none to be had. `exempt` as for spool_new_chunk. */
int spool_stream_grow(struct spool_stream *stream, uint64_t bytes, int exempt);

static inline int spool_stream_room(struct spool_stream *stream, uint64_t bytes, int exempt)
{
    return __builtin_expect((size_t)(stream->end - stream->at) >= bytes, 1) || spool_stream_grow(stream, bytes, exempt);
}

/* What was written up to `at` becomes part of the spool. */
static inline void spool_stream_commit(struct spool_stream *stream, unsigned char *at)
{
    stream->at = at;
    __atomic_store_n(&stream->chunk->used, (uint64_t)(at - (unsigned char *)(stream->chunk + 1)), __ATOMIC_RELEASE);
}

/* Appends a definition: type byte, packed struct, and up to two payloads. Returns 0 when it could not be kept. */
int spool_define(struct spool_stream *stream, enum spool_record type, const void *head, size_t head_bytes,
                 const void *payload, size_t payload_bytes, const void *payload2, size_t payload2_bytes);

/* SPOOL_META with a key and a value. */
void spool_define_meta(struct spool_stream *stream, const char *key, const char *value);

#endif
