/*
 * Two processes of one node, and what lies between them: control messages in shared memory, which arrive a latency after
 * they were sent, and in order. Nothing here knows of sends and receives.
 *
 * The program forks its partner: it is rank 0, the partner rank 1.
 */
#ifndef TRANSPORT_H
#define TRANSPORT_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { MOST_EAGER = 16384 }; /* bytes that travel within a control message */

/* Codes of exit. */
enum { EXIT_WRONG = 1, EXIT_USAGE = 2, EXIT_REFUSED = 77 };

enum kind {
    EAGER,   /* a message with its data */
    RTS,     /* request to send: a message whose data are at the sender */
    CTS,     /* clear to send: where the data of an RTS are to be written */
    RTR,     /* request to receive: where the data of a send that has not been made yet are to be written */
    DROPPED, /* an RTR came when its message had gone as EAGER */
    WRITTEN, /* the data of a CTS or RTR are in the receiver's buffer */
    READ     /* the data of an RTS are in the receiver's buffer */
};

struct message {
    enum kind kind;
    int tag;
    int found_announcement; /* EAGER: its RTR had come in time, and was dropped */
    uint64_t sequence;      /* which send of this tag it is, from 0 */
    uint64_t bytes;         /* of the data; of an RTR and a CTS, room in the buffer */
    uint64_t address;       /* of the buffer, in the process that sent this */
    uint64_t send, receive; /* requests, each known to its own process alone */
};

/* What the link is like; the same for both directions, which do not disturb each other. */
struct link {
    double latency_us;
    double bytes_per_us;
};

extern struct link the_link;
extern int rank;    /* of this process: 0 or 1 */
extern pid_t other; /* the other process */

/*
 * Forks the partner; both return from it. Where the kernel does not let them read and write each other's memory it says
 * why and exits with EXIT_REFUSED.
 */
void start_transport(const struct link *link);

/* Ends both: rank 1 exits, rank 0 returns the code that it gave. */
int end_transport(int code);

/* Says what is wrong, and ends this process; the other one follows. */
_Noreturn void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Sends, in order. Never blocks: what has no room waits until flush_messages. `data` are copied. */
void send_message(const struct message *message, const void *data);
void flush_messages(void);
int messages_wait(void);

/* Of the engine that moves data, whose messages have an order of their own: it may block. */
void send_message_from_nic(const struct message *message);

/* The next message that has arrived, or none; it stays where it is until take_message. */
const struct message *arrived_message(const void **data);
void take_message(void);

/* Of who polls and finds nothing: leaves the processor to others now and then. */
void rest_a_little(void);

/* Rank 0 starts with the others: both return at the same moment, as nearly as their clock tells. */
void start_together(void);
void wait_for_other(void);   /* a barrier, in which nothing else happens */
void enter_barrier(void);    /* or in two, */
int barrier_is_over(void);   /* with something in between */

/* Room of each rank that both see, for what is agreed upon. */
enum { SHARED_BYTES = 4096 };
void *shared_room(int of_rank);

#endif
