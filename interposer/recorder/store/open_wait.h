/* Rows of open_wait: which requests the calls that never returned had been given. */
#ifndef LAPSCOPE_OPEN_WAIT_H
#define LAPSCOPE_OPEN_WAIT_H

#include "tables.h"

struct open_call;
struct open_match;

struct open_waits {
    struct open_call *calls;
    struct open_match *matches;
    size_t call_count, call_room, match_count, match_room;
    int no_memory;
};

/* The call with that row id was open. All calls come before all requests. */
void open_waits_call(struct open_waits *waits, int64_t call, const struct spool_thread_state *state);

/* The request with that row id had not ended. */
void open_waits_request(struct open_waits *waits, int64_t request, const struct spool_live *live);

/* Writes the rows and lets go of everything. Returns 0, or -1 when there was no memory for them. */
int open_waits_end(struct open_waits *waits, struct store_tables *tables);

#endif
