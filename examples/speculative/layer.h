/*
 * The message layer: two processes, non-blocking sends and receives, matched by tag in the order of MPI. Whatever is decided
 * is decided inside these calls; only data move on their own (nic.h). That makes the difference between the protocols.
 */
#ifndef LAYER_H
#define LAYER_H

#include "nic.h"

enum { TAGS = 64, ANY_TAG = -1 };

/* How messages above the eager limit go. */
enum protocol {
    RENDEZVOUS_WRITE, /* RTS, CTS, RDMA write */
    RENDEZVOUS_READ,  /* RTS, RDMA read */
    SPECULATIVE,      /* as RENDEZVOUS_READ; a receive that comes first announces its buffer (RTR), the send finds it and writes */
    PROTOCOLS
};

extern const char *const protocol_names[PROTOCOLS];

/* What happened of what can go wrong with announcements, or keeps a receive from making one. Counted on both sides. */
#define RACES(RACE)                                                                                                    \
    RACE(announced)         /* receives that sent an RTR */                                                            \
    RACE(found)             /* sends that found theirs, and wrote */                                                   \
    RACE(crossed)           /* RTRs that met an RTS on the way: dropped, the receiver reads */                         \
    RACE(eager_found)       /* sends that found their RTR and were eager: dropped, which their envelope says */        \
    RACE(eager_late)        /* RTRs that came when an eager send had gone: dropped, which the sender tells */          \
    RACE(other_sequence)    /* sends that saw an RTR of their tag, for a later send */                                 \
    RACE(held_back)         /* receives that announced nothing, as an unused RTR was still about */                    \
    RACE(wildcard)          /* receives of any tag, which cannot announce themselves */                                \
    RACE(behind_wildcard)   /* receives that announced nothing, as a wildcard before them may take their message */    \
    RACE(overtaken)         /* messages that came while an earlier one of their tag was still being written */

struct races {
#define RACE(name) long name;
    RACES(RACE)
#undef RACE
};

extern struct races races; /* of this process */

/* What was received. */
struct status {
    int tag;
    size_t bytes;
};

/* A send or a receive. Of the user's own memory; it stays in place until it is complete. */
struct request {
    int is_send, is_done;
    char *buffer;
    size_t bytes; /* of the message; of a receive, room in the buffer, then the message */
    int tag;      /* of a receive, of the message, once there is one */
    uint64_t sequence;
    int is_announced;       /* a receive whose RTR is out */
    uint64_t partner;       /* the request of the other process */
    struct transfer transfer;
    struct request *next;   /* in the list where it stands */
};

/* What start_layer takes. */
struct settings {
    enum protocol protocol;
    size_t eager_bytes; /* messages up to this go at once */
};

/* Both processes call it, after start_transport. It may be called again, when nothing is under way. */
void start_layer(const struct settings *settings);

/* Each of these first makes all progress that there is to make. */
void isend(struct request *request, const void *buffer, size_t bytes, int tag);
void irecv(struct request *request, void *buffer, size_t room, int tag); /* a tag or ANY_TAG */
int test(struct request *request);
void wait_for(struct request *request);

/* What a complete receive got. */
struct status status_of(const struct request *request);

/* Progress until both processes call this. */
void finish(void);

#endif
