/*
 * Rendezvous protocols between two processes of one node, with the kernel's copies between processes for an RDMA engine: the
 * speculative rendezvous of [RA08] beside the two that it is compared with. README.md has what it measures.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "benchmark.h"
#include "processor.h"
#include "stress.h"

#include "../common/measure.h"

static const char help[] =
    "speculative: overlap and progress of three rendezvous protocols; it starts its own partner, without MPI\n"
    "  -p PROTOCOL     write (RTS, CTS, RDMA write), read (RTS, RDMA read), speculative, or all  (all)\n"
    "  -a FIRST        sender, receiver or all: who posts first, by 500 us                        (all)\n"
    "  -d SIDE         send, receive or all: the side that computes meanwhile                     (all)\n"
    "  -b SIZES        bytes of the messages, above the eager limit                               (64K,256K,1M)\n"
    "  -r REPETITIONS  of everything, 1 to 1001                                                   (11)\n"
    "  -e BYTES        eager limit, up to 16K                                                     (8K)\n"
    "  -w MBPS         what the link carries, in megabytes (10^6) a second                        (400; -x: 2000)\n"
    "  -l US           its latency, in microseconds                                               (5; -x: 100)\n"
    "  -t FILE         writes the table as tab-separated values, too\n"
    "  -x SEED         random messages whose outcome is known, instead of measurements\n"
    "  -n SEEDS        so many of them, from SEED on                                              (1)\n"
    "  -m MESSAGES     in each direction                                                          (400)\n";

struct options {
    int first_protocol, last_protocol;
    struct benchmark benchmark;
    struct stress stress;
    int is_stress, bytes_per_us, latency_us; /* of the link, 0: not given */
    const char *tsv;
};

static void refuse(int option, const char *value, const char *takes)
{
    if (takes)
        fprintf(stderr, "speculative: -%c %.80s: it takes %s\n", option, value, takes);
    else
        fprintf(stderr, "speculative: no option -%c, or its value is missing; -h lists them\n", option);
    exit(EXIT_USAGE);
}

static void read_number(int option, int least, int most, const char *takes, int *number)
{
    if (!read_count(optarg, least, most, number))
        refuse(option, optarg, takes);
}

static void read_option(int option, struct options *o)
{
    struct benchmark *b = &o->benchmark;
    int seed, count;
    switch (option) {
    case 'p':
        if (!read_forms(optarg, protocol_names, PROTOCOLS, &o->first_protocol, &o->last_protocol))
            refuse(option, optarg, "write, read, speculative or all");
        break;
    case 'a':
        if (!read_forms(optarg, first_names, FIRSTS, &b->first_scenario, &b->last_scenario))
            refuse(option, optarg, "sender, receiver or all");
        break;
    case 'd':
        if (!read_forms(optarg, side_names, SIDES, &b->first_side, &b->last_side))
            refuse(option, optarg, "send, receive or all");
        break;
    case 'b':
        b->size_count = read_sizes(optarg, b->sizes, MOST_SIZES);
        if (!sizes_fit(b->sizes, b->size_count))
            refuse(option, optarg, "up to 32 sizes, such as 64K,1M");
        break;
    case 'e':
        if (read_sizes(optarg, &b->eager_bytes, 1) != 1 || b->eager_bytes > MOST_EAGER)
            refuse(option, optarg, "a size up to 16K");
        break;
    case 'r': read_number(option, 1, MOST_REPETITIONS, "a number of repetitions from 1 to 1001", &b->repetitions); break;
    case 'w': read_number(option, 1, 100000, "a number of megabytes a second from 1 to 100000", &o->bytes_per_us); break;
    case 'l': read_number(option, 1, 100000, "a number of microseconds from 1 to 100000", &o->latency_us); break;
    case 't': o->tsv = optarg; break;
    case 'x':
        read_number(option, 0, 1000000000, "a number from 0 to 1000000000", &seed);
        o->stress.seed = (uint64_t)seed;
        o->is_stress = 1;
        break;
    case 'n': read_number(option, 1, 1000000, "a number of seeds from 1 to 1000000", &o->stress.seeds); break;
    case 'm':
        read_number(option, 1, 10000, "a number of messages from 1 to 10000", &count);
        o->stress.messages = count;
        break;
    case 'h': fputs(help, stdout); exit(0);
    default: refuse(optopt, NULL, NULL);
    }
}

static void read_options(int argc, char **argv, struct options *o)
{
    int option;
    opterr = 0;
    while ((option = getopt(argc, argv, "p:a:d:b:r:e:w:l:t:x:n:m:h")) != -1)
        read_option(option, o);
    if (optind < argc)
        refuse('-', argv[optind], "only options are understood");
    for (int i = 0; i < o->benchmark.size_count; i++)
        if (o->benchmark.sizes[i] <= o->benchmark.eager_bytes) {
            fprintf(stderr, "speculative: %zu bytes go at once: sizes must be above the eager limit of %zu (-e)\n",
                    o->benchmark.sizes[i], o->benchmark.eager_bytes);
            exit(EXIT_USAGE);
        }
    o->benchmark.first_protocol = o->stress.first = (enum protocol)o->first_protocol;
    o->benchmark.last_protocol = o->stress.last = (enum protocol)o->last_protocol;
    if (o->tsv && !(o->benchmark.tsv = fopen(o->tsv, "w"))) {
        fprintf(stderr, "speculative: %s: %s\n", o->tsv, strerror(errno));
        exit(EXIT_USAGE);
    }
}

static struct link link_of(const struct options *o)
{
    return (struct link){.latency_us = o->latency_us ? o->latency_us : o->is_stress ? 100 : 5,
                         .bytes_per_us = o->bytes_per_us ? o->bytes_per_us : o->is_stress ? 2000 : 400};
}

int main(int argc, char **argv)
{
    struct options o = {.last_protocol = PROTOCOLS - 1,
                        .benchmark = {.last_scenario = FIRSTS - 1,
                                      .last_side = SIDES - 1,
                                      .sizes = {65536, 262144, 1048576},
                                      .size_count = 3,
                                      .repetitions = 11,
                                      .eager_bytes = 8192},
                        .stress = {.seeds = 1, .messages = 400}};
    read_options(argc, argv, &o);
    struct link link = link_of(&o);
    start_transport(&link);
    watch_this_thread();
    start_nic();
    if (rank == 0)
        printf("# a link of %.0f MB/s, %.0f us; eager up to %zu bytes\n", link.bytes_per_us, link.latency_us,
               o.is_stress ? (size_t)2048 : o.benchmark.eager_bytes);
    if (o.is_stress)
        run_stress(&o.stress);
    else
        run_benchmark(&o.benchmark);
    if (o.benchmark.tsv && rank == 0 && fclose(o.benchmark.tsv) != 0)
        fail("%s: %s", o.tsv, strerror(errno));
    return end_transport(0);
}
