/*
 * Makes spools in memory, for tests. Hot records are put together byte by byte here, on purpose without the recorder's
 * own encoder: the two must agree on schema/spool.h, not on each other.
 */
#ifndef LAPSCOPE_TEST_SPOOL_BUILDER_H
#define LAPSCOPE_TEST_SPOOL_BUILDER_H

#include "../../schema/spool.h"

#include <stddef.h>

struct spool_builder {
    unsigned char *data;
    size_t bytes;
};

/* An offset in the spool: pointers move as it grows. */
typedef size_t chunk_at;

/* A spool of rank 3 of 8 with the monotonic clock: ticks are ns, and the epoch is at 1000. */
void build_spool(struct spool_builder *b);
void build_free(struct spool_builder *b);
struct spool_file_header *build_header(struct spool_builder *b);

chunk_at build_chunk(struct spool_builder *b, enum spool_chunk_kind kind, unsigned thread, size_t bytes, uint64_t base);
struct spool_chunk *build_chunk_head(struct spool_builder *b, chunk_at chunk);

/* Records; each returns the offset behind it. */
size_t build_definition(struct spool_builder *b, chunk_at chunk, enum spool_record type, const void *head, size_t head_bytes,
                        const void *payload, size_t payload_bytes, const void *payload2, size_t payload2_bytes);
size_t build_hot(struct spool_builder *b, chunk_at chunk, enum spool_record type, const uint64_t *fields, unsigned count);
#define BUILD_HOT(b, chunk, type, ...)                                                                             \
    build_hot(b, chunk, type, (const uint64_t[]){__VA_ARGS__}, sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t))

size_t build_meta(struct spool_builder *b, chunk_at chunk, const char *key, const char *value);
size_t build_thread(struct spool_builder *b, chunk_at chunk, unsigned number, int64_t tid);
size_t build_mark_name(struct spool_builder *b, chunk_at chunk, uint32_t id, const char *name);
size_t build_operation(struct spool_builder *b, chunk_at chunk, struct spool_operation operation);
size_t build_outcome(struct spool_builder *b, chunk_at chunk, struct spool_outcome outcome);
size_t build_path(struct spool_builder *b, chunk_at chunk, uint32_t id, unsigned frames, const uint64_t *addresses);
size_t build_module(struct spool_builder *b, chunk_at chunk, struct spool_module module, const char *path);
size_t build_comm(struct spool_builder *b, chunk_at chunk, struct spool_comm comm, const char *name, const int32_t *members);

/* Entries in LIVE and TALLY chunks. */
struct spool_thread_state *build_state(struct spool_builder *b, chunk_at chunk);
struct spool_live *build_live(struct spool_builder *b, chunk_at chunk, unsigned entry);
struct spool_tally *build_tally(struct spool_builder *b, chunk_at chunk, unsigned entry);

/* Writes the first `bytes` bytes to a file; exits when that fails. */
void build_write(const struct spool_builder *b, const char *path, size_t bytes);

#endif
