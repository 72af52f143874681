/*
 * What `lapscope calibrate`, `lapscope thresholds --probe` and `lapscope doctor --progress` or `--gpu` run of their own: an MPI program in two
 * parts. The executable lapscope-calibrate (main.c) depends on libc alone, finds the MPI and loads the part that was compiled for
 * its ABI, which is this one: liblapscope-calibrate-<abi>.so. Its MPI symbols are bound when it is loaded, to
 * lapscope's own where that is preloaded.
 */
#ifndef LAPSCOPE_CALIBRATE_MODULE_H
#define LAPSCOPE_CALIBRATE_MODULE_H

/* The one entry. Modes: transfers, in about `seconds`; limits; progress; gpu. Returns an exit code. */
typedef int calibrate_fn(const char *mode, double seconds);
#define CALIBRATE_SYMBOL "lapscope_calibrate"

/* The largest message, and the room in each of the two buffers. */
enum { MAX_BYTES = 16 << 20 };

/* State of a measurement on this rank. */
struct bench {
    int rank, ranks;
    char *out, *in; /* MAX_BYTES each */
};

/* Two ranks between which messages go; a paces, and b == a where they go to oneself. */
struct pair {
    int a, b;
    const char *what;
};

enum { MAX_PAIRS = 6 };

/* pairs.c: all kinds of pairs that there are. Of each a near and a far one: neighbours may share a cache, the ends of
 * the world be several switches apart. Returns how many. */
int choose_pairs(const struct bench *bench, struct pair *pairs);

/* One pair of each kind after the other, each in about `seconds`: the one rank paces, the other follows it. To itself a
 * rank has no network. */
typedef void lead_fn(const struct bench *bench, const struct pair *pair, double seconds);
typedef void follow_fn(const struct bench *bench, int peer);
void each_kind_of_pair(const struct bench *bench, double seconds, lead_fn *lead, follow_fn *follow);

/* A barrier that leaves the processor to others: there may be more ranks than processors. */
void rest_until_all_are_here(void);

/* transfers.c: messages between pairs of ranks, every path that there is. */
void measure_transfers(struct bench *bench, double seconds);

/* round_trips.c: PRTT(n, d, s) for LogGPS, of one pair of each kind, each in about `seconds`. */
void measure_round_trips(struct bench *bench, double seconds);

/* sharing.c: several messages at once, one way and both ways, likewise. */
void measure_sharing(struct bench *bench, double seconds);

/* collectives.c: blocking collectives of all ranks. */
void measure_collectives(struct bench *bench, double seconds);

/* limits.c: sends to receivers who are elsewhere, of one pair of each kind, each in about `seconds`. */
void probe_limits(struct bench *bench, double seconds);

/* progress.c: how much moves while ranks compute, of one pair of each kind and in collectives of all, in at most about
 * `seconds`. */
void measure_progress(struct bench *bench, double seconds);

/* gpu.c: kernels of known length beside messages; as long as it takes. */
void use_gpu(struct bench *bench, double seconds);

/* pace.c: how often to repeat what takes `once_s`, for about `budget_s`. */
int repetitions(double budget_s, double once_s, int least, int most);

/* The k-th size of a sweep with `per_octave` sizes to an octave: 0, 1, 2, 4 ... and what lies between; beyond `most`
 * -1. */
long sweep_size(int k, int per_octave, long most);

/* Rank 0 says on standard error what is measured, where the command line wants that. */
void show_progress(const struct bench *bench, const char *what, long bytes);
void end_progress(const struct bench *bench);

#endif
