#include "definitions.h"

#include "../base/call.h"

#include <stdlib.h>
#include <string.h>

/* --- tables by id ------------------------------------------------------------------------------------------------- */

void *id_table_make(struct id_table *table, uint64_t id)
{
    if (id >= table->size) {
        size_t size = table->size ? table->size : 64;
        while (size <= id)
            size *= 2;
        void *grown = realloc(table->entries, size * table->entry_bytes);
        if (!grown)
            return NULL;
        memset((char *)grown + table->size * table->entry_bytes, 0, (size - table->size) * table->entry_bytes);
        table->entries = grown;
        table->size = size;
    }
    return (char *)table->entries + id * table->entry_bytes;
}

void *id_table_at(const struct id_table *table, uint64_t id)
{
    return id < table->size ? (char *)table->entries + id * table->entry_bytes : NULL;
}

const struct spool_operation *spool_operation_of(const struct spool_definitions *definitions, uint64_t id)
{
    const struct spool_operation *operation = id_table_at(&definitions->operations, id);
    return operation && operation->id ? operation : NULL;
}

const struct spool_outcome *spool_outcome_of(const struct spool_definitions *definitions, uint64_t id)
{
    const struct spool_outcome *outcome = id_table_at(&definitions->outcomes, id);
    return outcome && outcome->id ? outcome : NULL;
}

const struct comm_definition *spool_comm_of(const struct spool_definitions *definitions, uint64_t id)
{
    const struct comm_definition *comm = id_table_at(&definitions->comms, id);
    return comm && comm->head.id ? comm : NULL;
}

const struct mark_name_definition *spool_mark_name_of(const struct spool_definitions *definitions, uint64_t id)
{
    const struct mark_name_definition *name = id_table_at(&definitions->mark_names, id);
    return name && name->head.id ? name : NULL;
}

int spool_has_path(const struct spool_definitions *definitions, uint64_t id)
{
    const struct path_definition *path = id_table_at(&definitions->paths, id);
    return path && path->head.id;
}

int spool_has_thread(const struct spool_definitions *definitions, uint64_t number)
{
    const struct thread_definition *thread = id_table_at(&definitions->threads, number + 1);
    return thread && thread->known;
}

/* --- members ------------------------------------------------------------------------------------------------------ */

int64_t spool_member(const struct comm_definition *comm, uint64_t at)
{
    int32_t world;
    if (comm->head.members == UINT32_MAX || at >= comm->head.members)
        return WORLD_RANK_UNKNOWN;
    memcpy(&world, comm->members + at * sizeof world, sizeof world);
    return world;
}

int64_t spool_peer_world(const struct comm_definition *comm, int32_t peer)
{
    if (!comm || peer < 0 || peer >= (comm->head.inter ? comm->head.remote_size : comm->head.size))
        return WORLD_RANK_UNKNOWN;
    if (comm->head.members == 0)
        return peer;
    return spool_member(comm, (uint64_t)peer + (comm->head.inter ? (uint64_t)comm->head.size : 0));
}

/* --- counters ----------------------------------------------------------------------------------------------------- */

int spool_meta_is(const struct meta_definition *meta, const char *key)
{
    return meta->head.key_bytes == strlen(key) && !memcmp(meta->key, key, meta->head.key_bytes);
}

const char *spool_meta_behind(const struct meta_definition *meta, const char *prefix, size_t *bytes)
{
    size_t prefix_bytes = strlen(prefix), key_bytes = meta->head.key_bytes;
    *bytes = key_bytes - prefix_bytes;
    return key_bytes > prefix_bytes && !memcmp(meta->key, prefix, prefix_bytes) ? (const char *)meta->key + prefix_bytes : NULL;
}

void spool_meta_fields(const struct meta_definition *meta, const char **texts, size_t *bytes, int count)
{
    const char *at = (const char *)meta->value, *end = at + meta->head.value_bytes;
    for (int field = 0; field < count; field++) {
        const char *tab = memchr(at, '\t', (size_t)(end - at)), *stop = tab && field < count - 1 ? tab : end;
        texts[field] = at;
        bytes[field] = (size_t)(stop - at);
        at = stop < end ? stop + 1 : end;
    }
}

int spool_counter(const struct meta_definition *meta, struct counter_definition *counter)
{
    size_t digits;
    const char *number = spool_meta_behind(meta, "counter.", &digits);
    if (!number || digits > 2)
        return 0;
    *counter = (struct counter_definition){0};
    for (size_t i = 0; i < digits; i++)
        counter->number = counter->number * 10 + (unsigned)(number[i] - '0');
    spool_meta_fields(meta, counter->texts, counter->bytes, COUNTER_TEXTS);
    return counter->number < SPOOL_MAX_COUNTERS;
}

/* Those that are counted, in the order of their numbers. */
static void collect_counters(struct spool_definitions *definitions)
{
    unsigned counted = 0;
    for (uint64_t i = 1; i <= definitions->meta_count && i < definitions->metas.size; i++) {
        struct counter_definition counter;
        if (spool_counter(id_table_at(&definitions->metas, i), &counter) && counter.bytes[COUNTER_PROBLEM] == 0)
            counted |= 1u << counter.number;
    }
    for (unsigned number = 0; number < SPOOL_MAX_COUNTERS; number++)
        if (counted >> number & 1)
            definitions->counters[definitions->counter_count++] = number;
}

/* --- collecting --------------------------------------------------------------------------------------------------- */

struct collection {
    struct spool_definitions *definitions;
    struct spool_file *file;
    int out_of_memory;
};

/* Ids are given out one by one, so none can be larger than the number of records that the file has room for: a damaged
 * one must not cost memory. */
static void keep(struct collection *c, struct id_table *table, uint64_t id, size_t record_bytes, const void *entry,
                 const unsigned char *at)
{
    if (id == 0 || id > c->file->bytes / record_bytes) {
        spool_file_damaged(c->file, at);
        return;
    }
    void *place = id_table_make(table, id);
    if (place)
        memcpy(place, entry, table->entry_bytes);
    else
        c->out_of_memory = 1;
}

static int comm_is_sound(const struct spool_comm *comm)
{
    return comm->size >= 0 && comm->remote_size >= 0 && comm->comm_rank >= 0 && comm->ordinal <= INT32_MAX &&
           (comm->members == 0 || comm->members == UINT32_MAX ||
            comm->members == (uint64_t)comm->size + (uint64_t)comm->remote_size);
}

static int operation_is_sound(const struct spool_operation *operation)
{
    return operation->call < CALL_COUNT && operation->bytes <= SPOOL_MOST_BYTES && operation->actual_bytes <= SPOOL_MOST_BYTES;
}

static void collect_record(struct collection *c, const struct spool_view *view)
{
    struct spool_definitions *d = c->definitions;
    const unsigned char *first = view->payload, *second = view->payload2;
    switch (view->type) {
    case SPOOL_META:
        keep(c, &d->metas, ++d->meta_count, sizeof view->meta, &(struct meta_definition){view->meta, first, second}, first);
        break;
    case SPOOL_MODULE:
        keep(c, &d->modules, view->module.id, sizeof view->module,
             &(struct module_definition){view->module, first, second}, first);
        break;
    case SPOOL_PATH:
        keep(c, &d->paths, view->path.id, sizeof view->path, &(struct path_definition){view->path, first}, first);
        break;
    case SPOOL_COMM:
        keep(c, &d->comms, comm_is_sound(&view->comm) ? view->comm.id : 0, sizeof view->comm,
             &(struct comm_definition){view->comm, first, second}, first);
        break;
    case SPOOL_OPERATION:
        keep(c, &d->operations, operation_is_sound(&view->operation) ? view->operation.id : 0, sizeof view->operation,
             &view->operation, first);
        break;
    case SPOOL_OUTCOME:
        keep(c, &d->outcomes, view->outcome.bytes <= SPOOL_MOST_BYTES ? view->outcome.id : 0, sizeof view->outcome,
             &view->outcome, first);
        break;
    case SPOOL_MARK_NAME: {
        int is_sound = view->mark_name.name_bytes > 0 && view->mark_name.name_bytes <= SPOOL_MARK_NAME_BYTES;
        keep(c, &d->mark_names, is_sound ? view->mark_name.id : 0, sizeof view->mark_name,
             &(struct mark_name_definition){view->mark_name, first}, first);
        break;
    }
    case SPOOL_THREAD: {
        struct thread_definition *thread = id_table_at(&d->threads, view->thread.number + (uint64_t)1);
        if (thread && thread->known)
            thread->tid = view->thread.tid;
        else
            spool_file_damaged(c->file, first);
        break;
    }
    default:
        break;
    }
}

uint64_t spool_ns_per_tick(const struct spool_file_header *header)
{
    const struct spool_clock_pair *first = &header->first, *latest = &header->latest[header->latest_index & 1];
    double ticks_per_ns = header->nominal_ticks_per_ns;
    if (header->latest_index && latest->ticks > first->ticks && latest->monotonic_ns > first->monotonic_ns)
        ticks_per_ns = (double)(latest->ticks - first->ticks) /
                       (double)((uint64_t)latest->monotonic_ns - (uint64_t)first->monotonic_ns);
    if (!(ticks_per_ns > 1e-2 && ticks_per_ns < 1e3)) /* NaN too */
        ticks_per_ns = 1;
    return (uint64_t)(0x1p56 / ticks_per_ns);
}

static void collect_threads(struct collection *c)
{
    for (size_t i = 0; i < c->file->part_count; i++) {
        const struct spool_part *part = &c->file->parts[i];
        const struct spool_thread_state *state = NULL;
        struct thread_definition *thread = id_table_make(&c->definitions->threads, part->thread + (uint64_t)1);
        size_t count;
        if (!thread) {
            c->out_of_memory = 1;
            return;
        }
        thread->known = 1;
        if (part->kind == SPOOL_CHUNK_LIVE)
            spool_live_entries(part, &count, &state);
        if (state) {
            thread->mpi_ticks = state->mpi_ticks;
            thread->calls = state->calls < SPOOL_MOST ? state->calls : SPOOL_MOST;
        }
    }
}

int spool_definitions_collect(struct spool_definitions *definitions, struct spool_file *file)
{
    struct collection c = {definitions, file, 0};
    struct spool_view view;
    *definitions = (struct spool_definitions){.metas.entry_bytes = sizeof(struct meta_definition),
                                              .modules.entry_bytes = sizeof(struct module_definition),
                                              .paths.entry_bytes = sizeof(struct path_definition),
                                              .comms.entry_bytes = sizeof(struct comm_definition),
                                              .operations.entry_bytes = sizeof(struct spool_operation),
                                              .outcomes.entry_bytes = sizeof(struct spool_outcome),
                                              .mark_names.entry_bytes = sizeof(struct mark_name_definition),
                                              .threads.entry_bytes = sizeof(struct thread_definition)};
    definitions->first_ticks = file->header->first.ticks;
    definitions->ns_per_tick = spool_ns_per_tick(file->header);
    collect_threads(&c);
    for (size_t i = 0; i < file->part_count; i++) {
        struct spool_cursor cursor = spool_records(&file->parts[i]);
        while (file->parts[i].kind == SPOOL_CHUNK_STREAM && spool_next_definition(&cursor, &view))
            collect_record(&c, &view);
    }
    collect_counters(definitions);
    return c.out_of_memory ? -1 : 0;
}

void spool_definitions_free(struct spool_definitions *definitions)
{
    struct id_table *const tables[] = {&definitions->metas,      &definitions->modules,  &definitions->paths,
                                       &definitions->comms,      &definitions->operations, &definitions->outcomes,
                                       &definitions->mark_names, &definitions->threads};
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++)
        free(tables[i]->entries);
}
