#include "conversion.h"

#include "../base/call.h"
#include "../spool/codec.h"
#include "../spool/definitions.h"
#include "gone.h"
#include "open_wait.h"

#include <stdlib.h>
#include <string.h>

/* What a request is recognised by; see is_stored(). */
struct last_request {
    unsigned thread;              /* that posted it */
    uint64_t post_begin, operation;
};

struct conversion {
    struct store_tables *tables;
    struct spool_definitions definitions;
    struct spool_file *file;
    struct store_result *result;
    int64_t last_ns;              /* the latest moment seen */
    struct conversion_progress progress;
    /* The CALL read last: its row is written when the number of requests that it completed is known. */
    struct call_row call;
    int64_t call_id;
    uint64_t call_begin;          /* ticks */
    int64_t together;             /* requests that it ended, where some have no row; 0: all have */
    int has_call;
    int open_calls;               /* the process ended inside a call */
    /* What belongs to the REQUEST to come. */
    uint64_t extra[SPOOL_HOT_FIELDS], foreign[SPOOL_HOT_FIELDS];
    int has_extra, has_foreign;
    uint64_t cpu[SPOOL_HOT_FIELDS]; /* of the CALL to come */
    int has_cpu;
    int64_t counted[SPOOL_MAX_COUNTERS]; /* of the CALL or REQUEST to come */
    unsigned counted_known;       /* bit i: counted[i] is */
    struct last_request *last;    /* of each chunk */
    size_t last_count;
    struct open_waits waits;
};

static void notice(struct conversion *c, int64_t moment_ns)
{
    if (moment_ns > c->last_ns)
        c->last_ns = moment_ns;
}

/* --- streams ------------------------------------------------------------------------------------------------------ */

static void flush_call(struct conversion *c)
{
    if (c->has_call) {
        if (c->together > c->call.completed)
            c->call.completed = c->together;
        store_call(c->tables, &c->call);
        c->result->calls++;
    }
    c->together = 0;
    c->has_call = c->has_extra = c->has_foreign = 0;
}

/* A SPOOL_COUNTERS record; returns 0 when it speaks of counters that the spool does not define. */
static int take_counters(struct conversion *c, const uint64_t fields[SPOOL_HOT_FIELDS])
{
    unsigned count = c->definitions.counter_count;
    if (fields[0] >= count)
        return 0;
    for (unsigned i = 0; i < SPOOL_COUNTERS_A_RECORD && fields[0] + i < count; i++) {
        unsigned at = (unsigned)fields[0] + i;
        c->counted[at] = spool_unzigzag(fields[1 + i]);
        c->counted_known |= 1u << at;
    }
    return 1;
}

typedef void store_counter_of(struct store_tables *tables, int64_t row, unsigned number, int64_t value);

/* The values that belong to a row. */
static void give_counters(struct conversion *c, store_counter_of *store, int64_t row)
{
    for (unsigned i = 0; c->counted_known && i < c->definitions.counter_count; i++)
        if (c->counted_known >> i & 1)
            store(c->tables, row, c->definitions.counters[i], c->counted[i]);
    c->counted_known = 0;
}

/* What stands in front of a record that is not what it belongs to, belongs to nothing. */
static void forget_prefixes(struct conversion *c)
{
    c->has_cpu = 0;
    c->counted_known = 0;
}

/* Returns 0 when the spool does not say what the call was. */
static int take_call(struct conversion *c, const uint64_t fields[SPOOL_HOT_FIELDS], uint64_t begin, unsigned thread)
{
    const struct spool_definitions *d = &c->definitions;
    flush_call(c);
    int64_t operation = store_call_operation(c->tables, d, fields[0]);
    int64_t receive = fields[3] ? store_call_operation(c->tables, d, fields[3]) : 0;
    c->call_begin = begin;
    c->call = (struct call_row){.operation_id = operation,
                                .thread_id = c->tables->base.thread + thread + 1,
                                .begin_ns = spool_moment_ns(d, begin),
                                .duration_ns = spool_ns(d, fields[2]),
                                .user_ns = c->has_cpu ? (int64_t)c->cpu[0] : -1,
                                .system_ns = c->has_cpu ? (int64_t)c->cpu[1] : -1,
                                .receive_operation_id = receive ? receive : -1};
    if (!operation)
        return 0;
    c->call_id = c->tables->base.call + (int64_t)c->result->calls + 1;
    c->has_call = 1;
    give_counters(c, store_call_counter, c->call_id);
    notice(c, c->call.begin_ns + c->call.duration_ns);
    return 1;
}

/* A time that the spool holds as ticks plus 1; -1 when there is none. */
static int64_t optional_ns(const struct conversion *c, uint64_t ticks_plus_1)
{
    return ticks_plus_1 ? spool_ns(&c->definitions, ticks_plus_1 - 1) : -1;
}

static void fill_extra(const struct conversion *c, struct request_row *row)
{
    row->unsuccessful_tests = (int64_t)c->extra[0];
    row->first_unsuccessful_test_ns = optional_ns(c, c->extra[1]);
    row->last_unsuccessful_test_ns = optional_ns(c, c->extra[2]);
    row->last_incomplete_ns = optional_ns(c, c->extra[3]);
    row->first_complete_ns = optional_ns(c, c->extra[4]);
}

/* Returns 0 when the spool does not say what the request was, or which call ended it. */
static int take_request(struct conversion *c, const uint64_t fields[SPOOL_HOT_FIELDS], unsigned thread)
{
    const struct spool_definitions *d = &c->definitions;
    uint64_t poster = c->has_foreign ? c->foreign[0] : thread, post_begin = c->call_begin - fields[1];
    struct request_row row = {.operation_id = store_request_operation(c->tables, d, fields[0]),
                              .completion_id = c->call_id,
                              .thread_id = c->tables->base.thread + (unsigned)poster + 1,
                              .post_begin_ns = spool_moment_ns(d, post_begin),
                              .post_ns = spool_ns(d, fields[2]),
                              .mpi_ns = poster != thread ? -1 : spool_ns(d, fields[3]),
                              .outstanding_bytes = (int64_t)fields[4],
                              .first_unsuccessful_test_ns = -1,
                              .last_unsuccessful_test_ns = -1,
                              .last_incomplete_ns = -1,
                              .first_complete_ns = -1,
                              .injection_arm = c->has_foreign ? (int64_t)c->foreign[1] - 1 : -1};
    uint64_t memory = c->has_foreign ? c->foreign[2] : SPOOL_MEMORY_UNKNOWN;
    if (c->has_extra)
        fill_extra(c, &row);
    c->has_extra = c->has_foreign = 0;
    int is_bounded = row.unsuccessful_tests <= (int64_t)SPOOL_MOST && row.injection_arm <= 1 && memory <= SPOOL_MEMORY_DEVICE;
    if (!c->has_call || !row.operation_id || !is_bounded || (poster != thread && !spool_has_thread(d, poster)))
        return 0;
    store_request(c->tables, &row);
    int64_t id = c->tables->base.request + (int64_t)++c->result->requests;
    store_request_memory(c->tables, id, (enum spool_data_memory)memory);
    give_counters(c, store_request_counter, id);
    c->call.completed++;
    c->last[c->last_count] = (struct last_request){(unsigned)poster, post_begin, fields[0]};
    return 1;
}

/* Returns 0 where the interval is none. */
static int take_starvation(struct conversion *c, const uint64_t fields[SPOOL_HOT_FIELDS])
{
    const struct spool_definitions *d = &c->definitions;
    int64_t length = spool_ns(d, fields[1]);
    if (fields[0] < fields[1] || fields[2] == 0 || fields[2] > (uint64_t)SPOOL_LONGEST_NS)
        return 0;
    int64_t end = spool_moment_ns(d, d->first_ticks + fields[0]);
    store_starvation(c->tables, end - length, end, (int64_t)fields[2] < length ? (int64_t)fields[2] : length);
    return 1;
}

/* The moment behind another, as far as a run can last. */
static int64_t later_ns(const struct conversion *c, int64_t begin, uint64_t ticks)
{
    int64_t end = begin + spool_ns(&c->definitions, ticks);
    return end < SPOOL_LONGEST_NS ? end : SPOOL_LONGEST_NS;
}

/* Returns 0 when the spool does not say what was left out. */
static int take_left_out(struct conversion *c, const uint64_t fields[SPOOL_HOT_FIELDS])
{
    const struct spool_definitions *d = &c->definitions;
    int64_t operation = store_call_operation(c->tables, d, fields[0]);
    if (!operation || fields[1] == 0 || fields[1] > SPOOL_MOST)
        return 0;
    int64_t begin = spool_moment_ns(d, d->first_ticks + fields[2]);
    store_left_out(c->tables, operation, (int64_t)fields[1], begin, later_ns(c, begin, fields[3]));
    return 1;
}

/* Returns 0 where it is no slot. */
static int take_detail(struct conversion *c, const uint64_t fields[SPOOL_HOT_FIELDS])
{
    const struct spool_definitions *d = &c->definitions;
    if (fields[1] >= SPOOL_STAGES || fields[4] > 1)
        return 0;
    int64_t begin = spool_moment_ns(d, d->first_ticks + fields[2]);
    store_detail(c->tables, (int64_t)fields[0], (int64_t)fields[1], begin, later_ns(c, begin, fields[3]), fields[4] != 0);
    return 1;
}

/* Returns 0 when the spool does not say what the name was, or no program can have asked for such a level. */
static int take_mark(struct conversion *c, const uint64_t fields[SPOOL_HOT_FIELDS], unsigned thread)
{
    const struct spool_definitions *d = &c->definitions;
    const struct mark_name_definition *name = spool_mark_name_of(d, fields[2]);
    int64_t level = spool_unzigzag(fields[1]), moment = spool_moment_ns(d, d->first_ticks + fields[0]);
    if ((fields[2] && !name) || level < INT32_MIN || level > INT32_MAX)
        return 0;
    store_mark(c->tables, thread + 1, moment, level, name);
    notice(c, moment);
    return 1;
}

/* Returns 0 where there is no call, it is said to have ended more than a run can hold, or nothing was left out. */
static int take_together(struct conversion *c, const uint64_t fields[SPOOL_HOT_FIELDS])
{
    if (!c->has_call || fields[0] > SPOOL_MOST || !c->file->header->summarized)
        return 0;
    c->together = (int64_t)fields[0];
    return 1;
}

static int take_record(struct conversion *c, const struct spool_view *view, uint64_t *begin, unsigned thread)
{
    int sound = 1;
    switch (view->type) {
    case SPOOL_CALL:
        *begin += view->fields[1];
        sound = take_call(c, view->fields, *begin, thread);
        forget_prefixes(c);
        return sound;
    case SPOOL_REQUEST:
        sound = take_request(c, view->fields, thread);
        forget_prefixes(c);
        return sound;
    case SPOOL_CPU:
        memcpy(c->cpu, view->fields, sizeof c->cpu);
        c->has_cpu = 1;
        return 1;
    case SPOOL_COUNTERS:
        return take_counters(c, view->fields);
    case SPOOL_EXTRA:
        memcpy(c->extra, view->fields, sizeof c->extra);
        c->has_extra = 1;
        return 1;
    case SPOOL_STARVED:
        return take_starvation(c, view->fields);
    case SPOOL_LEFT_OUT:
        return take_left_out(c, view->fields);
    case SPOOL_TOGETHER:
        return take_together(c, view->fields);
    case SPOOL_DETAIL:
        return take_detail(c, view->fields);
    case SPOOL_MARK:
        return take_mark(c, view->fields, thread);
    case SPOOL_WATCH:
        return store_watch(c->tables, &c->definitions, thread + 1u, &view->watch);
    case SPOOL_FOREIGN:
        memcpy(c->foreign, view->fields, sizeof c->foreign);
        c->has_foreign = 1;
        return 1;
    default:
        return 1;
    }
}

static void take_stream(struct conversion *c, const struct spool_part *part)
{
    struct spool_cursor cursor = spool_records(part);
    struct spool_view view;
    uint64_t begin = part->base;
    int found;
    for (;;) {
        const unsigned char *at = cursor.at;
        found = spool_next_record(c->file, &cursor, &view);
        if (found <= 0)
            break;
        if (!take_record(c, &view, &begin, part->thread))
            spool_file_damaged(c->file, at);
    }
    if (found == 0 && (cursor.at < cursor.end || spool_goes_on(part))) /* padding stands behind what is in use */
        spool_file_damaged(c->file, cursor.at);
    forget_prefixes(c);
    if (found < 0) /* requests in the next chunk may have been ended by a call that cannot be read */
        flush_call(c);
    c->last_count += c->last[c->last_count].operation != 0;
}

static void take_streams(struct conversion *c)
{
    const struct spool_part *before = NULL;
    for (size_t i = 0; i < c->file->part_count && !c->tables->failed; i++) {
        const struct spool_part *part = &c->file->parts[i];
        if (part->kind == SPOOL_CHUNK_STREAM) {
            if (before && (before->thread != part->thread || before->gap != part->gap))
                flush_call(c);
            take_stream(c, part);
            before = part;
        }
        struct conversion_progress *progress = &c->progress;
        progress->done_bytes += part->bytes;
        if (progress->tell)
            progress->tell(progress->context,
                           progress->done_bytes < progress->end_bytes ? progress->done_bytes : progress->end_bytes,
                           progress->total_bytes);
    }
    flush_call(c);
}

/* --- what had not ended, and what was only counted ---------------------------------------------------------------- */

static void take_current_call(struct conversion *c, const struct spool_part *part, const struct spool_thread_state *state)
{
    uint32_t operation = state->current_operation;
    if (!operation || c->file->header->end == SPOOL_FINALIZED)
        return;
    struct call_row row = {.operation_id = store_call_operation(c->tables, &c->definitions, operation),
                           .thread_id = c->tables->base.thread + part->thread + 1,
                           .begin_ns = spool_moment_ns(&c->definitions, state->current_begin),
                           .duration_ns = -1, .user_ns = -1, .system_ns = -1, .receive_operation_id = -1};
    if (!row.operation_id) {
        spool_file_damaged(c->file, state);
        return;
    }
    store_call(c->tables, &row);
    c->open_calls = 1;
    notice(c, row.begin_ns);
    c->result->calls++;
    c->result->pending++;
    open_waits_call(&c->waits, c->tables->base.call + (int64_t)c->result->calls, state);
}

/* Killed between the writing of a REQUEST and the clearing of its live entry: then it is the last REQUEST of a stream.
 */
static int is_stored(const struct conversion *c, const struct spool_live *live)
{
    for (size_t i = 0; i < c->last_count; i++) {
        const struct spool_outcome *outcome = spool_outcome_of(&c->definitions, c->last[i].operation);
        if (c->last[i].post_begin == live->post_begin && c->last[i].thread == live->thread && outcome &&
            outcome->operation == live->operation)
            return 1;
    }
    return 0;
}

/* A moment in a live entry as a time since its post; -1 when `known` says that there is none. */
static int64_t since_post_ns(const struct conversion *c, const struct spool_live *live, int known, uint64_t moment)
{
    if (!known)
        return -1;
    return spool_between_ns(&c->definitions, live->post_begin, moment);
}

/* Returns 0 when the spool does not say what the request was. */
static int take_pending(struct conversion *c, const struct spool_live *live)
{
    int tested = live->unsuccessful_tests != 0;
    struct request_row row = {
        .operation_id = store_pending_operation(c->tables, &c->definitions, live->operation),
        .completion_id = -1,
        .thread_id = c->tables->base.thread + live->thread + 1,
        .post_begin_ns = spool_moment_ns(&c->definitions, live->post_begin),
        .post_ns = spool_ns(&c->definitions, live->post_ticks),
        .mpi_ns = -1,
        .outstanding_bytes = (int64_t)live->outstanding_bytes,
        .unsuccessful_tests = live->unsuccessful_tests,
        .first_unsuccessful_test_ns = since_post_ns(c, live, tested, live->first_unsuccessful_test),
        .last_unsuccessful_test_ns = since_post_ns(c, live, tested, live->last_unsuccessful_test),
        .last_incomplete_ns = since_post_ns(c, live, tested && live->last_incomplete, live->last_incomplete),
        .first_complete_ns = since_post_ns(c, live, live->flags & SPOOL_LIVE_SEEN_COMPLETE, live->seen_complete),
        .injection_arm = (live->injection_arm & SPOOL_LIVE_ARM) - 1};
    if (!row.operation_id || !spool_has_thread(&c->definitions, live->thread) || live->outstanding_bytes > SPOOL_MOST_BYTES ||
        row.injection_arm > 1)
        return 0;
    store_request(c->tables, &row);
    notice(c, row.post_begin_ns + row.post_ns);
    notice(c, row.post_begin_ns + row.last_unsuccessful_test_ns);
    int64_t id = c->tables->base.request + (int64_t)++c->result->requests;
    c->result->pending++;
    store_request_memory(c->tables, id, (enum spool_data_memory)((live->injection_arm & SPOOL_LIVE_MEMORY) >> SPOOL_LIVE_MEMORY_SHIFT));
    open_waits_request(&c->waits, id, live);
    return 1;
}

static void take_state(struct conversion *c, const struct spool_part *part)
{
    const struct spool_thread_state *state;
    size_t count;
    spool_live_entries(part, &count, &state);
    if (state)
        take_current_call(c, part, state);
}

static void take_live(struct conversion *c, const struct spool_part *part)
{
    const struct spool_thread_state *state;
    size_t count;
    const struct spool_live *live = spool_live_entries(part, &count, &state);
    for (size_t i = 0; i < count && !c->tables->failed; i++)
        if (live[i].operation && !is_stored(c, &live[i]) && !take_pending(c, &live[i]))
            spool_file_damaged(c->file, &live[i]);
}

static void take_tally(struct conversion *c, const struct spool_part *part)
{
    size_t count;
    const struct spool_tally *tally = spool_tally_entries(part, &count);
    for (size_t i = 0; i < count && tally[i].call_plus_1 && !c->tables->failed; i++)
        if (!store_entry(c->tables, &c->definitions, part->thread + 1u, &tally[i]))
            spool_file_damaged(c->file, &tally[i]);
}

/* Returns 0 where no device can have worked so. */
static int take_device_busy(struct conversion *c, const struct spool_device_busy *row)
{
    const struct spool_definitions *d = &c->definitions;
    int64_t begin = spool_moment_ns(d, row->begin), end = later_ns(c, begin, row->ticks), busy = spool_ns(d, row->busy_ticks);
    if (row->work_plus_1 > STORE_DEVICE_WORKS || row->device > INT32_MAX || row->busy_ticks > row->ticks)
        return 0;
    store_device_busy(c->tables, row->device, row->work_plus_1 - 1, begin, end, busy < end - begin ? busy : end - begin);
    return 1;
}

static void take_devices(struct conversion *c, const struct spool_part *part)
{
    const struct spool_device_state *state;
    size_t count;
    const struct spool_device_busy *rows = spool_device_entries(part, &count, &state);
    if (state && state->resolution_ns <= (uint64_t)SPOOL_LONGEST_NS && state->lost <= SPOOL_MOST)
        store_device_recorder(c->tables, state);
    else if (state)
        spool_file_damaged(c->file, state);
    for (size_t i = 0; i < count && rows[i].work_plus_1 && !c->tables->failed; i++)
        if (!take_device_busy(c, &rows[i]))
            spool_file_damaged(c->file, &rows[i]);
}

static void take_rest(struct conversion *c)
{
    for (size_t i = 0; i < c->file->part_count; i++)
        if (c->file->parts[i].kind == SPOOL_CHUNK_LIVE)
            take_state(c, &c->file->parts[i]);
    for (size_t i = 0; i < c->file->part_count; i++) {
        if (c->file->parts[i].kind == SPOOL_CHUNK_LIVE)
            take_live(c, &c->file->parts[i]);
        else if (c->file->parts[i].kind == SPOOL_CHUNK_TALLY)
            take_tally(c, &c->file->parts[i]);
        else if (c->file->parts[i].kind == SPOOL_CHUNK_DEVICE)
            take_devices(c, &c->file->parts[i]);
    }
}

/* Killed when MPI had ended, as by a launcher that did not wait: then nothing is missing. */
static uint32_t how_ended(const struct conversion *c)
{
    const struct spool_file_header *header = c->file->header;
    return header->end == SPOOL_OPEN && header->finalize_begin && !c->open_calls ? SPOOL_FINALIZED : header->end;
}

static void take_rank(struct conversion *c)
{
    const struct spool_file_header *header = c->file->header;
    struct rank_row row = {
        .header = header,
        .end = how_ended(c),
        .init_end_ns = spool_moment_ns(&c->definitions, header->init_end),
        .end_ns = header->finalize_begin ? spool_moment_ns(&c->definitions, header->finalize_begin) : c->last_ns,
        .spool_bytes = (int64_t)c->file->bytes,
        .damaged = (int64_t)c->file->damaged};
    if (row.end_ns > SPOOL_LONGEST_NS)
        row.end_ns = SPOOL_LONGEST_NS;
    if (row.end_ns < row.init_end_ns)
        row.end_ns = row.init_end_ns;
    row.gone_ns = gone_ns(&c->definitions, header, row.end, row.end_ns);
    store_rank(c->tables, &c->definitions, &row);
    c->result->end = row.end;
    c->result->lost = header->lost_records;
    c->result->damaged = c->file->damaged;
    c->result->damaged_at = c->file->damaged_at;
}

/* --- the whole ---------------------------------------------------------------------------------------------------- */

int conversion_of(struct store_tables *tables, struct spool_file *file, struct store_result *result,
                  const struct conversion_progress *progress)
{
    struct conversion c = {.tables = tables, .file = file, .result = result, .progress = *progress};
    c.last = calloc(file->part_count + 1, sizeof *c.last);
    int failed = !c.last || spool_definitions_collect(&c.definitions, file) != 0;
    if (!failed) {
        store_rank_begin(c.tables, file->header);
        store_definitions(c.tables, &c.definitions);
        take_streams(&c);
        take_rest(&c);
        failed = open_waits_end(&c.waits, c.tables) != 0;
        take_rank(&c);
        store_rank_end(c.tables, &c.definitions, (int64_t)c.result->calls, (int64_t)c.result->requests);
    }
    spool_definitions_free(&c.definitions);
    free(c.last);
    return failed ? -1 : 0;
}
