#include "spool_builder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void grow(struct spool_builder *b, size_t bytes)
{
    unsigned char *grown = realloc(b->data, b->bytes + bytes);
    if (!grown)
        abort();
    memset(grown + b->bytes, 0, bytes);
    b->data = grown;
    b->bytes += bytes;
}

void build_spool(struct spool_builder *b)
{
    *b = (struct spool_builder){0};
    grow(b, SPOOL_HEADER_BYTES);
    struct spool_file_header *header = build_header(b);
    memcpy(header->magic, SPOOL_MAGIC, sizeof header->magic);
    header->version = SPOOL_VERSION;
    header->header_bytes = SPOOL_HEADER_BYTES;
    header->clock = SPOOL_CLOCK_MONOTONIC;
    header->rank = 3;
    header->world_size = 8;
    header->world = header->life = 1;
    header->pid = 4711;
    header->pid_start = 99;
    header->thread_level = 3;
    strcpy(header->host, "node17");
    strcpy(header->boot_id, "0f0e0d0c-1111-2222-3333-444455556666");
    header->first = (struct spool_clock_pair){1000, 1000};
    header->epoch_unix_ns = 1700000000000000000;
    header->init_end = 1010;
    header->nominal_ticks_per_ns = 1;
}

void build_free(struct spool_builder *b)
{
    free(b->data);
    b->data = NULL;
}

struct spool_file_header *build_header(struct spool_builder *b)
{
    return (struct spool_file_header *)(void *)b->data;
}

chunk_at build_chunk(struct spool_builder *b, enum spool_chunk_kind kind, unsigned thread, size_t bytes, uint64_t base)
{
    chunk_at chunk = b->bytes;
    grow(b, bytes);
    *build_chunk_head(b, chunk) = (struct spool_chunk){
        .magic = SPOOL_CHUNK_MAGIC, .kind = (uint16_t)kind, .thread = (uint16_t)thread, .bytes = bytes, .base = base};
    build_header(b)->chunks++;
    return chunk;
}

struct spool_chunk *build_chunk_head(struct spool_builder *b, chunk_at chunk)
{
    return (struct spool_chunk *)(void *)(b->data + chunk);
}

/* Where the next record of a chunk goes; aborts when the chunk is full. */
static unsigned char *append(struct spool_builder *b, chunk_at chunk, size_t bytes)
{
    struct spool_chunk *head = build_chunk_head(b, chunk);
    unsigned char *at = b->data + chunk + sizeof *head + head->used;
    if (sizeof *head + head->used + bytes > head->bytes)
        abort();
    head->used += bytes;
    return at;
}

size_t build_definition(struct spool_builder *b, chunk_at chunk, enum spool_record type, const void *head, size_t head_bytes,
                        const void *payload, size_t payload_bytes, const void *payload2, size_t payload2_bytes)
{
    unsigned char *at = append(b, chunk, 1 + head_bytes + payload_bytes + payload2_bytes);
    *at++ = (unsigned char)type;
    memcpy(at, head, head_bytes);
    at += head_bytes;
    if (payload_bytes)
        memcpy(at, payload, payload_bytes);
    at += payload_bytes;
    if (payload2_bytes)
        memcpy(at, payload2, payload2_bytes);
    return (size_t)(at + payload2_bytes - b->data);
}

size_t build_hot(struct spool_builder *b, chunk_at chunk, enum spool_record type, const uint64_t *fields, unsigned count)
{
    unsigned char record[64] = {(unsigned char)type};
    size_t bytes = 3;
    unsigned lengths = 0;
    for (unsigned i = 0; i < count; i++) {
        unsigned length = 0;
        for (uint64_t rest = fields[i]; rest; rest /= 256) {
            record[bytes++] = (unsigned char)(rest % 256);
            length++;
        }
        lengths += length << 3 * i;
    }
    record[1] = (unsigned char)(lengths % 256);
    record[2] = (unsigned char)(lengths / 256);
    unsigned char *at = append(b, chunk, bytes);
    memcpy(at, record, bytes);
    return (size_t)(at + bytes - b->data);
}

size_t build_meta(struct spool_builder *b, chunk_at chunk, const char *key, const char *value)
{
    struct spool_meta meta = {(uint16_t)strlen(key), (uint32_t)strlen(value)};
    return build_definition(b, chunk, SPOOL_META, &meta, sizeof meta, key, strlen(key), value, strlen(value));
}

size_t build_thread(struct spool_builder *b, chunk_at chunk, unsigned number, int64_t tid)
{
    struct spool_thread thread = {(uint16_t)number, tid};
    return build_definition(b, chunk, SPOOL_THREAD, &thread, sizeof thread, NULL, 0, NULL, 0);
}

size_t build_mark_name(struct spool_builder *b, chunk_at chunk, uint32_t id, const char *name)
{
    struct spool_mark_name head = {id, (uint8_t)strlen(name)};
    return build_definition(b, chunk, SPOOL_MARK_NAME, &head, sizeof head, name, head.name_bytes, NULL, 0);
}

size_t build_operation(struct spool_builder *b, chunk_at chunk, struct spool_operation operation)
{
    return build_definition(b, chunk, SPOOL_OPERATION, &operation, sizeof operation, NULL, 0, NULL, 0);
}

size_t build_outcome(struct spool_builder *b, chunk_at chunk, struct spool_outcome outcome)
{
    return build_definition(b, chunk, SPOOL_OUTCOME, &outcome, sizeof outcome, NULL, 0, NULL, 0);
}

size_t build_path(struct spool_builder *b, chunk_at chunk, uint32_t id, unsigned frames, const uint64_t *addresses)
{
    struct spool_path path = {id, (uint16_t)frames, 0};
    return build_definition(b, chunk, SPOOL_PATH, &path, sizeof path, addresses, frames * sizeof *addresses, NULL, 0);
}

size_t build_module(struct spool_builder *b, chunk_at chunk, struct spool_module module, const char *path)
{
    static const unsigned char build_id[] = {0xde, 0xad, 0x00, 0x0f};
    static const char function[] = "python:Grid.exchange";
    int is_python = module.begin >> 63 != 0;
    module.path_bytes = (uint16_t)strlen(path);
    module.build_id_bytes = is_python ? sizeof function - 1 : sizeof build_id;
    return build_definition(b, chunk, SPOOL_MODULE, &module, sizeof module, path, strlen(path),
                            is_python ? (const void *)function : build_id, module.build_id_bytes);
}

size_t build_comm(struct spool_builder *b, chunk_at chunk, struct spool_comm comm, const char *name, const int32_t *members)
{
    comm.name_bytes = (uint16_t)strlen(name);
    size_t listed = comm.members == UINT32_MAX ? 0 : comm.members;
    return build_definition(b, chunk, SPOOL_COMM, &comm, sizeof comm, name, strlen(name), members, listed * sizeof *members);
}

struct spool_thread_state *build_state(struct spool_builder *b, chunk_at chunk)
{
    build_chunk_head(b, chunk)->has_state = 1;
    return (struct spool_thread_state *)(void *)(b->data + chunk + sizeof(struct spool_chunk));
}

struct spool_live *build_live(struct spool_builder *b, chunk_at chunk, unsigned entry)
{
    size_t state = build_chunk_head(b, chunk)->has_state ? sizeof(struct spool_thread_state) : 0;
    return (struct spool_live *)(void *)(b->data + chunk + sizeof(struct spool_chunk) + state) + entry;
}

struct spool_tally *build_tally(struct spool_builder *b, chunk_at chunk, unsigned entry)
{
    return (struct spool_tally *)(void *)(b->data + chunk + sizeof(struct spool_chunk)) + entry;
}

void build_write(const struct spool_builder *b, const char *path, size_t bytes)
{
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(b->data, 1, bytes, file) != bytes || fclose(file) != 0) {
        perror(path);
        exit(2);
    }
}
