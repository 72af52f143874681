/* Overlap and progress as [RA07] measures them, in the timing scenarios of [RA08]. */
#ifndef BENCHMARK_H
#define BENCHMARK_H

#include <stdio.h>

#include "layer.h"

enum { MOST_SIZES = 32 };
enum first { SENDER_FIRST, RECEIVER_FIRST, FIRSTS };
enum side { SIDE_SEND, SIDE_RECEIVE, SIDES };

extern const char *const first_names[FIRSTS];
extern const char *const side_names[SIDES];

struct benchmark {
    enum protocol first_protocol, last_protocol;
    int first_scenario, last_scenario, first_side, last_side;
    size_t sizes[MOST_SIZES];
    int size_count, repetitions;
    size_t eager_bytes;
    FILE *tsv; /* NULL: none is wanted */
};

/* In both processes, after start_transport. */
void run_benchmark(const struct benchmark *benchmark);

#endif
