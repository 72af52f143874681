/*
 * See protocol.h. The announcements of the speculative protocol [RA08]:
 *
 * - A receive that finds no message and expects a rendezvous sends an RTR. It names the send that it is for by the number of
 *   that send within its tag: n sends of a tag go to the n receives that take them, in order. A receive behind a waiting
 *   wildcard does not know its number, and a wildcard has none.
 * - A send above the eager limit that finds the RTR of its number writes. Behind the data comes WRITTEN, for that receive.
 * - A send that does not find it sends an RTS. Its RTR may be under way: it is dropped when it comes, and the receiver, who gets
 *   an RTS for a receive that it has announced, reads as if it had not.
 * - A send up to the eager limit drops the RTR of its number, and its envelope says so. Where the envelope does not say so,
 *   the RTR is still under way to a send that has been made: the receiver announces nothing until DROPPED tells that it is
 *   gone. So no more than MOST_ANNOUNCED are ever about, and an old address is never written to.
 */
#include "protocol.h"

#include <string.h>

#include "match.h"

enum { MOST_ANNOUNCED = 64 };

static struct settings with;
static struct message announcements[MOST_ANNOUNCED]; /* of the other process, for sends that have not been made */
static int announcement_count;
static int own_announced, own_unused; /* RTRs of this process: whose message has not come; whose message came without them */
static struct request *awaiting;      /* sends whose RTS is out */
static struct request *transferring;  /* requests whose data the engine moves */

void start_protocol(const struct settings *settings)
{
    if (announcement_count || own_announced || own_unused || awaiting || transferring)
        fail("requests are under way");
    with = *settings;
}

static uint64_t name_of(const struct request *request)
{
    return (uint64_t)(uintptr_t)request;
}

static struct request *named(uint64_t name)
{
    return (struct request *)(uintptr_t)name;
}

static void push(struct request **list, struct request *request)
{
    request->next = *list;
    *list = request;
}

static void take_out(struct request **list, const struct request *request)
{
    while (*list && *list != request)
        list = &(*list)->next;
    if (!*list)
        fail("an answer to a send that waits for none");
    *list = (*list)->next;
}

static void begin_transfer(struct request *request, enum direction direction, uint64_t there)
{
    request->transfer.direction = direction;
    request->transfer.here = request->buffer;
    request->transfer.there = there;
    request->transfer.bytes = request->bytes;
    push(&transferring, request);
    post_transfer(&request->transfer);
}

/* --- the sender's side -------------------------------------------------------------------------------------------- */

/* To the buffer that a CTS or an RTR names. */
static void write_to(struct request *send, const struct message *buffer)
{
    if (send->bytes > buffer->bytes)
        fail("a message of %zu bytes for a receive of %llu", send->bytes, (unsigned long long)buffer->bytes);
    send->transfer.tells = 1;
    send->transfer.tell = (struct message){.kind = WRITTEN,
                                           .tag = send->tag,
                                           .sequence = send->sequence,
                                           .bytes = send->bytes,
                                           .receive = buffer->receive};
    begin_transfer(send, RDMA_WRITE, buffer->address);
}

static void remove_announcement(int i)
{
    announcements[i] = announcements[--announcement_count];
}

/* Takes the announcement for this send out of the table; returns whether there was one. */
static int find_announcement(const struct request *send, struct message *found)
{
    int others = 0;
    for (int i = 0; i < announcement_count; i++) {
        if (announcements[i].tag != send->tag)
            continue;
        if (announcements[i].sequence == send->sequence) {
            *found = announcements[i];
            remove_announcement(i);
            return 1;
        }
        others++;
    }
    races.other_sequence += others > 0;
    return 0;
}

static void send_eagerly(struct request *send, int found_announcement)
{
    struct message message = {.kind = EAGER,
                              .tag = send->tag,
                              .found_announcement = found_announcement,
                              .sequence = send->sequence,
                              .bytes = send->bytes};
    races.eager_found += found_announcement;
    send_message(&message, send->buffer);
    send->is_done = 1;
}

static void ask_to_send(struct request *send)
{
    struct message message = {.kind = RTS,
                              .tag = send->tag,
                              .sequence = send->sequence,
                              .bytes = send->bytes,
                              .address = (uint64_t)(uintptr_t)send->buffer,
                              .send = name_of(send)};
    push(&awaiting, send);
    send_message(&message, NULL);
}

void begin_send(struct request *send)
{
    struct message buffer;
    int is_found = find_announcement(send, &buffer);
    if (send->bytes <= with.eager_bytes)
        send_eagerly(send, is_found);
    else if (is_found) {
        races.found++;
        write_to(send, &buffer);
    } else
        ask_to_send(send);
}

static void on_clear_to_send(const struct message *message)
{
    struct request *send = named(message->send);
    take_out(&awaiting, send);
    write_to(send, message);
}

static void on_read(const struct message *message)
{
    struct request *send = named(message->send);
    take_out(&awaiting, send);
    send->is_done = 1;
}

static int is_awaiting(int tag, uint64_t sequence)
{
    for (const struct request *send = awaiting; send; send = send->next)
        if (send->tag == tag && send->sequence == sequence)
            return 1;
    return 0;
}

/*
 * Kept for its send, or dropped when that has been made. An RTS for which it came too late is still unanswered: the receiver
 * sent the RTR before it read.
 */
static void on_request_to_receive(const struct message *message)
{
    if (message->sequence >= sends_made(message->tag)) {
        if (announcement_count == MOST_ANNOUNCED)
            fail("more announcements than there may be");
        announcements[announcement_count++] = *message;
    } else if (is_awaiting(message->tag, message->sequence))
        races.crossed++;
    else {
        struct message dropped = {.kind = DROPPED, .tag = message->tag, .sequence = message->sequence};
        races.eager_late++;
        send_message(&dropped, NULL);
    }
}

/* --- the receiver's side ------------------------------------------------------------------------------------------ */

void announce(struct request *receive)
{
    if (with.protocol != SPECULATIVE || receive->bytes <= with.eager_bytes)
        return;
    if (receive->tag == ANY_TAG)
        races.wildcard++;
    else if (wildcards_wait())
        races.behind_wildcard++;
    else if (own_unused > 0)
        races.held_back++;
    else if (own_announced < MOST_ANNOUNCED) {
        receive->is_announced = 1;
        receive->sequence = sequence_of(receive);
        struct message message = {.kind = RTR,
                                  .tag = receive->tag,
                                  .sequence = receive->sequence,
                                  .bytes = receive->bytes,
                                  .address = (uint64_t)(uintptr_t)receive->buffer,
                                  .receive = name_of(receive)};
        own_announced++;
        races.announced++;
        send_message(&message, NULL);
    }
}

int unused_are_about(void)
{
    return own_unused > 0;
}

static void clear_to_send(const struct request *receive, const struct message *envelope)
{
    struct message message = {.kind = CTS,
                              .tag = receive->tag,
                              .sequence = receive->sequence,
                              .bytes = receive->bytes,
                              .address = (uint64_t)(uintptr_t)receive->buffer,
                              .send = envelope->send,
                              .receive = name_of(receive)};
    send_message(&message, NULL);
}

void begin_receive(struct request *receive, const struct message *envelope, const void *data)
{
    if (envelope->bytes > receive->bytes)
        fail("a message of %llu bytes for a receive of %zu", (unsigned long long)envelope->bytes, receive->bytes);
    if (receive->is_announced) {
        own_announced--;
        own_unused += envelope->kind == EAGER && !envelope->found_announcement;
    }
    receive->tag = envelope->tag;
    receive->sequence = envelope->sequence;
    receive->bytes = envelope->bytes;
    if (envelope->kind == EAGER) {
        if (receive->bytes)
            memcpy(receive->buffer, data, receive->bytes);
        receive->is_done = 1;
    } else if (with.protocol == RENDEZVOUS_WRITE)
        clear_to_send(receive, envelope);
    else {
        receive->partner = envelope->send;
        receive->transfer.tells = 0;
        begin_transfer(receive, RDMA_READ, envelope->address);
    }
}

static void on_envelope(const struct message *message, const void *data)
{
    struct request *receive = receive_for(message);
    if (receive)
        begin_receive(receive, message, data);
    else
        keep_arrival(message, data);
}

static void on_written(const struct message *message)
{
    struct request *receive = named(message->receive);
    if (receive->is_announced) {
        match_written(receive);
        own_announced--;
    }
    receive->sequence = message->sequence;
    receive->bytes = message->bytes;
    receive->is_done = 1;
}

/* --- progress ----------------------------------------------------------------------------------------------------- */

static void finish_transfer(struct request *request)
{
    if (!request->is_send) { /* nobody else tells the sender that its data were read */
        struct message message = {.kind = READ, .tag = request->tag, .send = request->partner};
        send_message(&message, NULL);
    }
    request->is_done = 1;
}

static void finish_transfers(void)
{
    struct request **at = &transferring;
    while (*at) {
        struct request *request = *at;
        if (atomic_load_explicit(&request->transfer.is_done, memory_order_acquire)) {
            *at = request->next;
            finish_transfer(request);
        } else
            at = &request->next;
    }
}

static void handle(const struct message *message, const void *data)
{
    switch (message->kind) {
    case EAGER:
    case RTS: on_envelope(message, data); break;
    case CTS: on_clear_to_send(message); break;
    case RTR: on_request_to_receive(message); break;
    case DROPPED: own_unused--; break;
    case WRITTEN: on_written(message); break;
    case READ: on_read(message); break;
    }
}

void progress(void)
{
    const void *data;
    finish_transfers();
    for (const struct message *message; (message = arrived_message(&data)) != NULL; take_message())
        handle(message, data);
    flush_messages();
}
