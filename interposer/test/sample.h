/*
 * A small spool with one of everything, killed: two threads whose definitions lie in each other's streams, every record
 * type, requests that never ended, a request ended by another thread, a call under way, summaries.
 *
 * Chunks in the file: streams and other chunks of both threads mixed; thread 0 has two stream chunks.
 */
#ifndef LAPSCOPE_TEST_SAMPLE_H
#define LAPSCOPE_TEST_SAMPLE_H

#include "spool_builder.h"

/* Where the records that become rows end in the file: a file cut before that has not got them. */
struct sample_ends {
    size_t calls[6], requests[3];     /* in the order of writing within each thread: thread 0's, then thread 1's */
    size_t pending[2], current_call;
    size_t tallies[2];
};

void build_sample(struct spool_builder *b, struct sample_ends *ends);

#endif
