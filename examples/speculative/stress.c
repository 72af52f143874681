/*
 * See stress.h. Both processes draw the same plan from the seed: sends of each direction, and receives that are known to get
 * one of them each. With one sender, the order of sends and that of receives decide which message a receive gets, whenever it
 * is posted: the earliest that no earlier receive has taken and whose tag fits. So receives are drawn in their order, and what
 * each must get is known.
 */
#include "stress.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../common/measure.h"

enum { STRESS_EAGER = 2048, STRESS_TAGS = 4, MOST_BYTES = 65536, GUARD = 64 };

struct planned {
    int send_tag; /* of message i */
    size_t bytes;
    int receive_tag; /* of receive j, which gets message `gets` */
    size_t room;
    int gets;
};

/* Of one run on one rank. */
struct run {
    const struct stress *stress;
    uint64_t seed;
    struct planned *plan[2]; /* by the rank that sends */
    struct request *sends, *receives;
    int *checked_sends, *checked_receives;
    int sent, posted; /* how many are under way or complete */
};

/* --- chance ------------------------------------------------------------------------------------------------------- */

/* SplitMix64: any seed is a good one. */
static uint64_t draw(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static int below(uint64_t *state, int limit)
{
    return (int)(draw(state) % (uint64_t)limit);
}

/* --- the plan ----------------------------------------------------------------------------------------------------- */

static size_t draw_bytes(uint64_t *state)
{
    switch (below(state, 5)) {
    case 0: return (size_t)(STRESS_EAGER + below(state, 2)); /* the last eager one, the first that is not */
    case 1:
    case 2: return (size_t)below(state, STRESS_EAGER);
    default: return (size_t)(STRESS_EAGER + 1 + below(state, MOST_BYTES - STRESS_EAGER));
    }
}

/* Of one direction. */
static struct planned *draw_plan(uint64_t seed, int from, int messages)
{
    enum { WINDOW = 5 };
    uint64_t state = seed * 2 + (uint64_t)from;
    struct planned *plan = calloc((size_t)messages, sizeof *plan);
    char *taken = calloc((size_t)messages, 1);
    if (!plan || !taken)
        fail("no memory for %d messages", messages);
    for (int i = 0; i < messages; i++) {
        plan[i].send_tag = below(&state, STRESS_TAGS);
        plan[i].bytes = draw_bytes(&state);
    }
    for (int j = 0; j < messages; j++) {
        int wanted = 0, skip = below(&state, WINDOW), gets = 0;
        for (int i = 0; i < messages && skip >= 0; i++)
            if (!taken[i]) {
                wanted = plan[i].send_tag;
                skip--;
            }
        plan[j].receive_tag = below(&state, 24) == 0 ? ANY_TAG : wanted;
        while (taken[gets] || (plan[j].receive_tag != ANY_TAG && plan[gets].send_tag != plan[j].receive_tag))
            gets++;
        taken[gets] = 1;
        plan[j].gets = gets;
        plan[j].room = plan[gets].bytes + (below(&state, 2) ? (size_t)below(&state, 4 * STRESS_EAGER) : 0);
    }
    free(taken);
    return plan;
}

/* --- contents ----------------------------------------------------------------------------------------------------- */

static void fill_contents(char *buffer, size_t bytes, uint64_t seed, int from, int number)
{
    uint64_t state = (seed * 2 + (uint64_t)from) * 1000003 + (uint64_t)number;
    for (size_t i = 0; i < bytes; i += sizeof state) {
        uint64_t word = draw(&state);
        memcpy(buffer + i, &word, bytes - i < sizeof word ? bytes - i : sizeof word);
    }
}

static char *room_for(size_t bytes, int value)
{
    char *buffer = malloc(bytes + GUARD);
    if (!buffer)
        fail("no memory for %zu bytes", bytes);
    memset(buffer, value, bytes + GUARD);
    return buffer;
}

enum { UNTOUCHED = 0x6e, REUSED = 0x5d };

static void check_receive(const struct run *run, int j, const char *when)
{
    const struct planned *plan = run->plan[1 - rank];
    const struct planned *message = &plan[plan[j].gets];
    const struct request *receive = &run->receives[j];
    struct status status = status_of(receive);
    static char expected[MOST_BYTES];
    if (status.tag != message->send_tag || status.bytes != message->bytes)
        fail("seed %llu: receive %d of rank %d %s: tag %d, %zu bytes, and message %d has tag %d, %zu bytes",
             (unsigned long long)run->seed, j, rank, when, status.tag, status.bytes, plan[j].gets, message->send_tag,
             message->bytes);
    fill_contents(expected, message->bytes, run->seed, 1 - rank, plan[j].gets);
    if (memcmp(receive->buffer, expected, message->bytes) != 0)
        fail("seed %llu: receive %d of rank %d %s: not the bytes of message %d", (unsigned long long)run->seed, j, rank, when,
             plan[j].gets);
    for (size_t i = message->bytes; i < plan[j].room + GUARD; i++)
        if (receive->buffer[i] != UNTOUCHED)
            fail("seed %llu: receive %d of rank %d %s: byte %zu behind a message of %zu was written",
                 (unsigned long long)run->seed, j, rank, when, i, message->bytes);
}

/* --- a run -------------------------------------------------------------------------------------------------------- */

/* A buffer that is free again is written to at once: data that were still to be read would be other ones. */
static void look_at_send(struct run *run, int i)
{
    if (run->checked_sends[i] || !test(&run->sends[i]))
        return;
    memset(run->sends[i].buffer, REUSED, run->sends[i].bytes);
    free(run->sends[i].buffer);
    run->checked_sends[i] = 1;
}

static void look_at_receive(struct run *run, int j)
{
    if (run->checked_receives[j] || !test(&run->receives[j]))
        return;
    check_receive(run, j, "when complete");
    run->checked_receives[j] = 1;
}

static void make_send(struct run *run)
{
    int i = run->sent++;
    const struct planned *message = &run->plan[rank][i];
    char *buffer = room_for(message->bytes, REUSED);
    fill_contents(buffer, message->bytes, run->seed, rank, i);
    isend(&run->sends[i], buffer, message->bytes, message->send_tag);
}

static void post_receive(struct run *run)
{
    int j = run->posted++;
    const struct planned *receive = &run->plan[1 - rank][j];
    irecv(&run->receives[j], room_for(receive->room, UNTOUCHED), receive->room, receive->receive_tag);
}

/* Outside the layer, or in it, or not at all. */
static void pass_time(struct run *run, uint64_t *state)
{
    switch (below(state, 4)) {
    case 0: nanosleep(&(struct timespec){0, 1000 * (1 + below(state, 200))}, NULL); break;
    case 1:
        for (int looks = below(state, 20); looks > 0; looks--) {
            if (run->sent)
                look_at_send(run, below(state, run->sent));
            if (run->posted)
                look_at_receive(run, below(state, run->posted));
        }
        break;
    default: break;
    }
}

static void complete_all(struct run *run)
{
    int messages = run->stress->messages;
    for (int i = 0; i < messages; i++) {
        wait_for(&run->sends[i]);
        look_at_send(run, i);
        wait_for(&run->receives[i]);
        look_at_receive(run, i);
    }
    finish();
    for (int j = 0; j < messages; j++) { /* and nobody wrote to them later */
        check_receive(run, j, "at the end");
        free(run->receives[j].buffer);
    }
}

static struct run start_run(const struct stress *stress, uint64_t seed)
{
    size_t count = (size_t)stress->messages;
    struct run run = {.stress = stress,
                      .seed = seed,
                      .plan = {draw_plan(seed, 0, stress->messages), draw_plan(seed, 1, stress->messages)},
                      .sends = calloc(count, sizeof *run.sends),
                      .receives = calloc(count, sizeof *run.receives),
                      .checked_sends = calloc(count, sizeof(int)),
                      .checked_receives = calloc(count, sizeof(int))};
    if (!run.sends || !run.receives || !run.checked_sends || !run.checked_receives)
        fail("no memory for %d messages", stress->messages);
    return run;
}

static void end_run(struct run *run)
{
    free(run->plan[0]);
    free(run->plan[1]);
    free(run->sends);
    free(run->receives);
    free(run->checked_sends);
    free(run->checked_receives);
}

/* Bursts of sends or receives, so that either side is ahead at times. */
static void run_seed(const struct stress *stress, uint64_t seed)
{
    enum { LONGEST_BURST = 6 };
    struct run run = start_run(stress, seed);
    uint64_t state = ~seed * 2 + (uint64_t)rank;
    while (run.sent < stress->messages || run.posted < stress->messages) {
        int sends = below(&state, 2);
        for (int burst = 1 + below(&state, LONGEST_BURST); burst > 0; burst--) {
            if (sends && run.sent < stress->messages)
                make_send(&run);
            else if (!sends && run.posted < stress->messages)
                post_receive(&run);
            if (below(&state, 3) == 0)
                pass_time(&run, &state);
        }
    }
    complete_all(&run);
    end_run(&run);
}

/* --- the table ---------------------------------------------------------------------------------------------------- */

static void print_head(enum protocol protocol)
{
    printf("table stress protocol=%s\n", protocol_names[protocol]);
    print_columns("seed messages "
#define RACE(name) #name " "
                  RACES(RACE)
#undef RACE
    );
}

/* Sums of both ranks. */
static void print_races(uint64_t seed, int messages)
{
    struct races *room = shared_room(rank);
    *room = races;
    wait_for_other();
    if (rank == 0) {
        const struct races *theirs = shared_room(1);
        print_count(seed);
        print_count(2 * (size_t)messages);
#define RACE(name) print_count((size_t)(races.name + theirs->name));
        RACES(RACE)
#undef RACE
        end_row();
        fflush(stdout);
    }
    wait_for_other();
}

void run_stress(const struct stress *stress)
{
    for (enum protocol protocol = stress->first; protocol <= stress->last; protocol++) {
        if (rank == 0)
            print_head(protocol);
        for (int i = 0; i < stress->seeds; i++) {
            start_layer(&(struct settings){protocol, STRESS_EAGER});
            wait_for_other();
            run_seed(stress, stress->seed + (uint64_t)i);
            print_races(stress->seed + (uint64_t)i, stress->messages);
        }
        if (rank == 0)
            printf("\n");
    }
}
