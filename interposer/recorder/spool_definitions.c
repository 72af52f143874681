#include "spool_definitions.h"

#include <stdlib.h>
#include <string.h>

/* Ids are given out one by one, so none can be larger than the file has bytes; a damaged one must not cost memory. */
static void *entry_for(struct id_table *table, uint64_t id, const struct spool_file *file)
{
    if (id == 0 || id > file->bytes / 16)
        return NULL;
    if (id >= table->size) {
        size_t size = table->size ? table->size : 256;
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

static const void *entry_of(const struct id_table *table, uint64_t id)
{
    return id && id < table->size ? (const char *)table->entries + id * table->entry_bytes : NULL;
}

const struct spool_operation *spool_operation_of(const struct spool_definitions *definitions, uint64_t id)
{
    const struct spool_operation *operation = entry_of(&definitions->operations, id);
    return operation && operation->id ? operation : NULL;
}

const struct spool_outcome *spool_outcome_of(const struct spool_definitions *definitions, uint64_t id)
{
    const struct spool_outcome *outcome = entry_of(&definitions->outcomes, id);
    return outcome && outcome->id ? outcome : NULL;
}

const struct comm_definition *spool_comm_of(const struct spool_definitions *definitions, uint64_t id)
{
    const struct comm_definition *comm = entry_of(&definitions->comms, id);
    return comm && comm->head.id ? comm : NULL;
}

int64_t spool_member(const struct comm_definition *comm, uint64_t at)
{
    int32_t world;
    if (comm->head.members == UINT32_MAX)
        return WORLD_RANK_UNKNOWN;
    if (comm->head.members == 0)
        return (int64_t)at;
    if (at >= comm->head.members)
        return WORLD_RANK_UNKNOWN;
    memcpy(&world, comm->members + at * sizeof world, sizeof world);
    return world;
}

int64_t spool_peer_world(const struct comm_definition *comm, int32_t peer)
{
    if (!comm || peer < 0 || peer >= (comm->head.inter ? comm->head.remote_size : comm->head.size))
        return WORLD_RANK_UNKNOWN;
    return spool_member(comm, (uint64_t)peer + (comm->head.inter ? (uint64_t)comm->head.size : 0));
}

/* --- collecting --------------------------------------------------------------------------------------------------- */

static int collect_record(struct spool_definitions *definitions, struct spool_file *file, const struct spool_view *view)
{
    void *entry = NULL;
    switch (view->type) {
    case SPOOL_OPERATION:
        if ((entry = entry_for(&definitions->operations, view->operation.id, file)))
            memcpy(entry, &view->operation, sizeof view->operation);
        return entry != NULL;
    case SPOOL_OUTCOME:
        if ((entry = entry_for(&definitions->outcomes, view->outcome.id, file)))
            memcpy(entry, &view->outcome, sizeof view->outcome);
        return entry != NULL;
    case SPOOL_COMM:
        if ((entry = entry_for(&definitions->comms, view->comm.id, file)))
            *(struct comm_definition *)entry = (struct comm_definition){view->comm, view->payload, view->payload2};
        return entry != NULL;
    default:
        return 1;
    }
}

static void set_clock(struct spool_definitions *definitions, const struct spool_file_header *header)
{
    const struct spool_clock_pair *latest = &header->latest[header->latest_index & 1];
    double ticks_per_ns = header->nominal_ticks_per_ns;
    if (header->latest_index && latest->ticks > header->first.ticks && latest->monotonic_ns > header->first.monotonic_ns)
        ticks_per_ns = (double)(latest->ticks - header->first.ticks) / (double)(latest->monotonic_ns - header->first.monotonic_ns);
    if (header->clock == SPOOL_CLOCK_MONOTONIC || !(ticks_per_ns > 1e-3 && ticks_per_ns < 1e3))
        ticks_per_ns = 1;
    double ns_per_tick = 1 / ticks_per_ns;
    definitions->first_ticks = header->first.ticks;
    definitions->ns_per_tick =
        ns_per_tick == 1 ? (uint64_t)1 << 56 : (uint64_t)(ns_per_tick < 127 ? ns_per_tick * 0x1p56 : 127 * 0x1p56);
}

int spool_definitions_collect(struct spool_definitions *definitions, struct spool_file *file)
{
    struct spool_view view;
    *definitions = (struct spool_definitions){.operations.entry_bytes = sizeof(struct spool_operation),
                                              .outcomes.entry_bytes = sizeof(struct spool_outcome),
                                              .comms.entry_bytes = sizeof(struct comm_definition)};
    set_clock(definitions, file->header);
    for (const struct spool_chunk *chunk = NULL; (chunk = spool_next_chunk(file, chunk));) {
        struct spool_cursor cursor = spool_records(chunk);
        while (chunk->kind == SPOOL_CHUNK_STREAM && spool_next_record(file, &cursor, &view))
            if (!collect_record(definitions, file, &view))
                file->damaged++;
    }
    return 0;
}

void spool_definitions_free(struct spool_definitions *definitions)
{
    free(definitions->operations.entries);
    free(definitions->outcomes.entries);
    free(definitions->comms.entries);
}
