#define _GNU_SOURCE
#include "store.h"

#include "call.h"
#include "spool_definitions.h"
#include "store_tables.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* One thread's records on their way into the tables. */
struct conversion {
    struct store_tables tables;
    struct spool_definitions definitions;
    struct spool_file *file;
    struct store_result *result;
    int64_t last_ns;              /* the latest moment seen */
    store_progress *progress;
    void *context;
    uint64_t done_bytes;
    /* the CALL read last: its row is written when the number of requests that it completed is known */
    struct call_row call;
    uint64_t call_begin;          /* ticks */
    int has_call;
    uint64_t extra[5], foreign[5];
    int has_extra, has_foreign;
};

static void notice(struct conversion *c, int64_t moment_ns)
{
    if (moment_ns > c->last_ns)
        c->last_ns = moment_ns;
}

/* --- streams ------------------------------------------------------------------------------------------------------ */

static void flush_call(struct conversion *c)
{
    if (!c->has_call)
        return;
    store_call(&c->tables, &c->call);
    c->result->calls++;
    c->has_call = 0;
}

static void take_call(struct conversion *c, const uint64_t fields[5], uint64_t *previous_begin, unsigned thread)
{
    flush_call(c);
    c->call_begin = *previous_begin += fields[1];
    c->call = (struct call_row){.id = ++c->tables.last_call,
                                .operation = store_call_operation(&c->tables, &c->definitions, fields[0]),
                                .thread = thread + 1,
                                .begin_ns = spool_moment_ns(&c->definitions, c->call_begin),
                                .duration_ns = spool_ns(&c->definitions, fields[2]),
                                .cpu_ns = (int64_t)fields[3] - 1,
                                .receive_operation =
                                    fields[4] ? store_call_operation(&c->tables, &c->definitions, fields[4]) : 0};
    c->has_call = 1;
    notice(c, c->call.begin_ns + c->call.duration_ns);
}

/* A time that the spool holds as ticks plus 1; -1 when there is none. */
static int64_t optional_ns(const struct conversion *c, uint64_t ticks_plus_1)
{
    return ticks_plus_1 ? spool_ns(&c->definitions, ticks_plus_1 - 1) : -1;
}

static void take_request(struct conversion *c, const uint64_t fields[5], unsigned thread)
{
    const uint64_t none[5] = {0}, *extra = c->has_extra ? c->extra : none;
    struct request_row row = {
        .operation = store_request_operation(&c->tables, &c->definitions, fields[0]),
        .completion = c->has_call ? c->call.id : 0,
        .thread = (c->has_foreign ? (unsigned)c->foreign[0] : thread) + 1,
        .post_begin_ns = spool_moment_ns(&c->definitions, c->call_begin - fields[1]),
        .post_ns = spool_ns(&c->definitions, fields[2]),
        .mpi_ns = c->has_foreign && c->foreign[0] != thread ? -1 : spool_ns(&c->definitions, fields[3]),
        .outstanding_bytes = (int64_t)fields[4],
        .polls = (int64_t)extra[0],
        .first_poll_ns = optional_ns(c, extra[1]),
        .last_poll_ns = optional_ns(c, extra[2]),
        .last_incomplete_ns = optional_ns(c, extra[3]),
        .first_complete_ns = optional_ns(c, extra[4]),
        .injection_arm = c->has_foreign ? (int)c->foreign[1] - 1 : -1};
    store_request(&c->tables, &row);
    c->result->requests++;
    c->call.completed++;
    c->has_extra = c->has_foreign = 0;
}

static void take_chunk(struct conversion *c, const struct spool_chunk *chunk)
{
    struct spool_cursor cursor = spool_records(chunk);
    struct spool_view view;
    uint64_t begin = chunk->base;
    while (spool_next_record(c->file, &cursor, &view))
        switch (view.type) {
        case SPOOL_CALL:
            take_call(c, view.fields, &begin, chunk->thread);
            break;
        case SPOOL_REQUEST:
            take_request(c, view.fields, chunk->thread);
            break;
        case SPOOL_EXTRA:
            memcpy(c->extra, view.fields, sizeof c->extra);
            c->has_extra = 1;
            break;
        case SPOOL_FOREIGN:
            memcpy(c->foreign, view.fields, sizeof c->foreign);
            c->has_foreign = 1;
            break;
        default:
            store_definition(&c->tables, &view);
            break;
        }
    c->done_bytes += chunk->bytes;
    if (c->progress)
        c->progress(c->context, c->done_bytes, c->file->bytes);
}

/* A thread's chunks in the order of writing; the file holds those of all threads mixed. */
static void take_streams(struct conversion *c)
{
    int more = 1;
    for (unsigned thread = 0; more; thread++) {
        more = 0;
        for (const struct spool_chunk *chunk = NULL; (chunk = spool_next_chunk(c->file, chunk));) {
            more |= chunk->thread > thread;
            if (chunk->thread == thread && chunk->kind == SPOOL_CHUNK_STREAM)
                take_chunk(c, chunk);
        }
        flush_call(c);
    }
}

/* --- what had not ended, and what was only counted ------------------------------------------------------------------ */

static void take_current_call(struct conversion *c, const struct spool_thread_state *state)
{
    if (!state->current_operation || c->file->header->end == SPOOL_FINALIZED)
        return;
    struct call_row row = {.id = ++c->tables.last_call,
                           .operation = store_call_operation(&c->tables, &c->definitions, state->current_operation),
                           .thread = state->thread + 1,
                           .begin_ns = spool_moment_ns(&c->definitions, state->current_begin),
                           .duration_ns = -1,
                           .cpu_ns = -1};
    store_call(&c->tables, &row);
    notice(c, row.begin_ns);
    c->result->calls++;
    c->result->pending++;
}

static void take_pending(struct conversion *c, const struct spool_live *live)
{
    int64_t begin = (int64_t)live->post_begin;
    int polled = live->polls != 0;
    struct request_row row = {
        .operation = store_pending_operation(&c->tables, &c->definitions, live->operation),
        .thread = live->thread + 1,
        .post_begin_ns = spool_moment_ns(&c->definitions, live->post_begin),
        .post_ns = spool_ns(&c->definitions, live->post_ticks),
        .mpi_ns = -1,
        .outstanding_bytes = (int64_t)live->outstanding_bytes,
        .polls = live->polls,
        .first_poll_ns = polled ? spool_ns(&c->definitions, live->first_poll - (uint64_t)begin) : -1,
        .last_poll_ns = polled ? spool_ns(&c->definitions, live->last_poll - (uint64_t)begin) : -1,
        .last_incomplete_ns =
            polled && live->last_incomplete ? spool_ns(&c->definitions, live->last_incomplete - (uint64_t)begin) : -1,
        .first_complete_ns = live->flags & SPOOL_LIVE_SEEN_COMPLETE ? spool_ns(&c->definitions, live->seen_complete - (uint64_t)begin) : -1,
        .injection_arm = live->injection_arm - 1};
    store_request(&c->tables, &row);
    notice(c, row.post_begin_ns + row.post_ns);
    c->result->requests++;
    c->result->pending++;
}

static void take_live(struct conversion *c)
{
    for (const struct spool_chunk *chunk = NULL; (chunk = spool_next_chunk(c->file, chunk));) {
        const struct spool_thread_state *state;
        size_t count;
        if (chunk->kind != SPOOL_CHUNK_LIVE)
            continue;
        const struct spool_live *live = spool_live_entries(chunk, &count, &state);
        if (state) {
            store_thread_state(&c->tables, state->thread, spool_ns(&c->definitions, state->mpi_ticks), (int64_t)state->calls);
            take_current_call(c, state);
        }
        for (size_t i = 0; i < count; i++)
            if (live[i].operation)
                take_pending(c, &live[i]);
    }
}

static void take_tallies(struct conversion *c)
{
    for (const struct spool_chunk *chunk = NULL; (chunk = spool_next_chunk(c->file, chunk));) {
        size_t count;
        if (chunk->kind != SPOOL_CHUNK_TALLY)
            continue;
        const struct spool_tally *tally = spool_tally_entries(chunk, &count);
        for (size_t i = 0; i < count && tally[i].call_plus_1; i++)
            store_tally(&c->tables, &c->definitions, chunk->thread + 1, &tally[i]);
    }
}

static void take_rank(struct conversion *c)
{
    const struct spool_file_header *header = c->file->header;
    struct rank_row row = {
        .header = header,
        .init_end_ns = spool_moment_ns(&c->definitions, header->init_end),
        .end_ns = header->finalize_begin ? spool_moment_ns(&c->definitions, header->finalize_begin) : c->last_ns,
        .spool_bytes = (int64_t)c->file->bytes,
        .damaged = (int64_t)c->file->damaged};
    if (row.end_ns < row.init_end_ns)
        row.end_ns = row.init_end_ns;
    store_rank(&c->tables, &row);
    c->result->lost = header->lost_records;
    c->result->damaged = c->file->damaged;
}

/* --- the whole ---------------------------------------------------------------------------------------------------- */

/* Makes the database's file ourselves: private, and never through somebody's link. */
static int create_private(const char *path)
{
    unlink(path); /* what an earlier conversion left half done */
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd >= 0)
        close(fd);
    return fd >= 0 ? 0 : errno;
}

static int convert_into(struct conversion *c, const char *path, char *error, size_t error_bytes)
{
    int code = create_private(path);
    if (code) {
        snprintf(error, error_bytes, "%s cannot be made (%s)", path, strerror(code));
        return -1;
    }
    int failed = store_tables_open(&c->tables, path, c->file->header->rank) != 0 ||
                 spool_definitions_collect(&c->definitions, c->file) != 0;
    c->file->damaged = 0; /* counted again while converting */
    if (!failed) {
        take_streams(c);
        take_live(c);
        take_tallies(c);
        take_rank(c);
    }
    failed |= store_tables_close(&c->tables, error, error_bytes) != 0;
    spool_definitions_free(&c->definitions);
    return failed ? -1 : 0;
}

int store_convert(const char *spool_path, const char *database_path, store_progress *progress, void *context,
                  struct store_result *result, char *error, size_t error_bytes)
{
    struct spool_file file;
    char part[4096];
    *result = (struct store_result){0};
    if (snprintf(part, sizeof part, "%s.part", database_path) >= (int)sizeof part) {
        snprintf(error, error_bytes, "the path %s is too long", database_path);
        return -1;
    }
    if (spool_file_open(&file, spool_path, error, error_bytes) != 0)
        return -1;
    result->rank = file.header->rank;
    result->life = file.header->life;
    result->end = file.header->end;
    struct conversion c = {.file = &file, .result = result, .progress = progress, .context = context};
    int failed = convert_into(&c, part, error, error_bytes);
    if (!failed && rename(part, database_path) != 0) {
        snprintf(error, error_bytes, "%s cannot be renamed to %s (%s)", part, database_path, strerror(errno));
        failed = -1;
    }
    if (failed)
        unlink(part);
    spool_file_close(&file);
    return failed;
}
