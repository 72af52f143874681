/* See layer.h. */
#include "layer.h"

#include <stdlib.h>
#include <string.h>

#include "match.h"
#include "protocol.h"

const char *const protocol_names[PROTOCOLS] = {"write", "read", "speculative"};

struct races races;

void start_layer(const struct settings *settings)
{
    if (settings->eager_bytes > MOST_EAGER)
        fail("an eager limit above %d bytes", MOST_EAGER);
    start_matching();
    start_protocol(settings);
    memset(&races, 0, sizeof races);
}

static void check_tag(int tag, int least)
{
    if (tag < least || tag >= TAGS)
        fail("tag %d: there are tags from 0 to %d", tag, TAGS - 1);
}

void isend(struct request *request, const void *buffer, size_t bytes, int tag)
{
    check_tag(tag, 0);
    progress();
    *request = (struct request){.is_send = 1, .buffer = (char *)(uintptr_t)buffer, .bytes = bytes, .tag = tag};
    request->sequence = next_send(tag);
    begin_send(request);
}

void irecv(struct request *request, void *buffer, size_t room, int tag)
{
    check_tag(tag, ANY_TAG);
    progress();
    *request = (struct request){.buffer = buffer, .bytes = room, .tag = tag};
    struct arrival *arrival = arrival_for(request);
    if (arrival)
        begin_receive(request, &arrival->message, arrival->data);
    else
        announce(request);
    free(arrival);
}

int test(struct request *request)
{
    progress();
    return request->is_done;
}

void wait_for(struct request *request)
{
    while (!test(request))
        rest_a_little();
}

struct status status_of(const struct request *request)
{
    return (struct status){request->tag, request->bytes};
}

/* All requests are complete on this side. What may still come is asked for by the other side, or an unused RTR's DROPPED. */
void finish(void)
{
    progress();
    while (messages_wait() || unused_are_about()) {
        rest_a_little();
        progress();
    }
    enter_barrier();
    while (!barrier_is_over()) {
        progress();
        rest_a_little();
    }
    progress();
}
