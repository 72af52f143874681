/*
 * A call says where in the application the handles stand that it was given (struct spool_thread_state), a live request where the
 * application keeps its handle. Requests of other threads count as well: any thread may wait for a request.
 *
 * So it takes four stores a completing call. A copy of the handles, or a number in each live entry, would cost the
 * length of the array in every MPI_Waitall. Handles that a program moves are not recognised.
 */
#include "open_wait.h"

#include <stdlib.h>

struct open_call {
    int64_t call;
    uint64_t variables, bytes, stride;
};

struct open_match {
    int64_t call, request;
    uint64_t variable;
};

/* Room for one more; NULL when there is no memory. */
static void *grown(struct open_waits *waits, void *all, size_t *room, size_t count, size_t each)
{
    if (count < *room)
        return all;
    size_t wanted = *room ? 2 * *room : 16;
    void *larger = realloc(all, wanted * each);
    if (larger)
        *room = wanted;
    else
        waits->no_memory = 1;
    return larger;
}

void open_waits_call(struct open_waits *waits, int64_t call, const struct spool_thread_state *state)
{
    if (!state->waits_count || !state->waits_stride)
        return;
    struct open_call *calls = grown(waits, waits->calls, &waits->call_room, waits->call_count, sizeof *calls);
    if (!calls)
        return;
    waits->calls = calls;
    calls[waits->call_count++] = (struct open_call){.call = call,
                                                    .variables = state->waits_variables,
                                                    .bytes = (uint64_t)state->waits_count * state->waits_stride,
                                                    .stride = state->waits_stride};
}

static int is_of(const struct open_call *call, uint64_t variable)
{
    uint64_t offset = variable - call->variables;
    return offset < call->bytes && offset % call->stride == 0;
}

/* A request is waited for by one thread at a time (MPI-4.1 11.6.1), so that the first call found is the one. */
void open_waits_request(struct open_waits *waits, int64_t request, const struct spool_live *live)
{
    size_t at = 0;
    while (at < waits->call_count && !is_of(&waits->calls[at], live->variable))
        at++;
    if (at == waits->call_count)
        return;
    struct open_match *matches = grown(waits, waits->matches, &waits->match_room, waits->match_count, sizeof *matches);
    if (!matches)
        return;
    waits->matches = matches;
    matches[waits->match_count++] =
        (struct open_match){.call = waits->calls[at].call, .request = request, .variable = live->variable};
}

static int compare(const void *one, const void *other)
{
    const struct open_match *a = one, *b = other;
    if (a->call != b->call)
        return a->call < b->call ? -1 : 1;
    if (a->variable != b->variable)
        return a->variable < b->variable ? -1 : 1;
    return a->request < b->request ? -1 : a->request > b->request;
}

static int is_same_place(const struct open_match *a, const struct open_match *b)
{
    return a->call == b->call && a->variable == b->variable;
}

int open_waits_end(struct open_waits *waits, struct store_tables *tables)
{
    struct open_match *all = waits->matches;
    size_t count = waits->match_count;
    if (count)
        qsort(all, count, sizeof *all, compare);
    for (size_t i = 0; i < count; i++) {
        int is_alone = (i == 0 || !is_same_place(&all[i - 1], &all[i])) && (i + 1 == count || !is_same_place(&all[i], &all[i + 1]));
        store_open_wait(tables, all[i].call, all[i].request, is_alone);
    }
    free(waits->calls);
    free(all);
    return waits->no_memory ? -1 : 0;
}
