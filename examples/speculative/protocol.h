/*
 * The three protocols: what each message means, and what follows from it. Called from within the layer's calls only.
 */
#ifndef PROTOCOL_H
#define PROTOCOL_H

#include "layer.h"

void start_protocol(const struct settings *settings);

/* All that has arrived and all that the engine has done. */
void progress(void);

/* A send that was just made. */
void begin_send(struct request *send);

/* A receive that was just posted and found no message. */
void announce(struct request *receive);

/* Whether a DROPPED is still to come. */
int unused_are_about(void);

/* A receive has its message: an envelope, and data where it has some. */
void begin_receive(struct request *receive, const struct message *envelope, const void *data);

#endif
