#include "turn.h"

#include "../base/arena.h"
#include "../base/config.h"
#include "../spool/writer.h"
#include "ending.h"

enum { PERCENT = 100 };

/* A buffer that nobody has touched, or sent again, for so long makes room when another's turn has come. */
#define PATIENCE_NS 100000000.0

/* xorshift64* (Vigna 2016) */
uint64_t turn_random(struct watcher *watcher)
{
    uint64_t x = watcher->random;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    watcher->random = x;
    return x * 0x2545f4914f6cdd1du >> 8;
}

static struct turn *turn_of(struct watcher *watcher, const struct operation *operation, enum spool_watch_side side)
{
    struct turn key = {.key = {operation, (uint64_t)side}};
    uint64_t hash = intern_hash(&key.key, sizeof key.key);
    void **slot = intern_find(&watcher->turns, hash, &key.key, sizeof key.key);
    if (slot && !*slot) {
        struct turn *turn = arena_alloc(sizeof *turn);
        if (!turn)
            return NULL;
        turn->hash = hash;
        turn->key = key.key;
        *slot = turn;
        watcher->turns.count++;
    }
    return slot ? *slot : NULL;
}

/* The first of a batch would always find the watchpoints free, so whoever has had more turns than the others waits with a
 * probability. */
static int has_had_its_share(struct watcher *watcher, const struct turn *turn)
{
    uint64_t mean = watcher->taken / (watcher->turns.count ? watcher->turns.count : 1) + 1, had = turn->taken + 1;
    return had > mean && turn_random(watcher) % (had * had) >= mean * mean;
}

static int is_over_budget(void)
{
    uint64_t spent = __atomic_load_n(&watch_cost.spent, __ATOMIC_RELAXED), elapsed = clock_now() - watch_cost.began;
    return spent * PERCENT > elapsed * (uint64_t)config.reach_budget;
}

/* The longer its turns have proved to last, the longer one is waited for. */
static int is_late(const struct watch *watch)
{
    enum { LONGER = 4 };
    struct turn *turn = watch->turn;
    uint64_t first = (uint64_t)(PATIENCE_NS * spool_header()->nominal_ticks_per_ns);
    uint64_t patience = turn->patience > first ? turn->patience : first;
    if (clock_now() - watch->edge <= patience)
        return 0;
    turn->patience = patience * LONGER;
    return 1;
}

struct watch *turn_free_watch(struct watcher *watcher, enum spool_watch_side side)
{
    int is_send = side == SPOOL_WATCH_SEND;
    unsigned from = is_send ? 0 : watcher->send_points, behind = is_send ? watcher->send_points : watcher->points;
    for (unsigned i = from; i < behind; i++)
        if (watcher->watches[i].state == WATCH_FREE)
            return &watcher->watches[i];
    for (unsigned i = from; i < behind; i++)
        if (is_late(&watcher->watches[i])) {
            watch_let_go(watcher, &watcher->watches[i], SPOOL_LET_GO_LATE, clock_now(), watcher_mpi_ticks(watcher));
            return &watcher->watches[i];
        }
    return NULL;
}

enum left_out watcher_draws(struct watcher *watcher, const struct operation *operation, enum spool_watch_side side,
                            struct turn **turn)
{
    if (turn_random(watcher) % PERCENT >= (uint64_t)config.reach_share)
        return LEFT_OUT_SHARE;
    *turn = turn_of(watcher, operation, side);
    if (!*turn || has_had_its_share(watcher, *turn) || !turn_free_watch(watcher, side))
        return LEFT_OUT_BUSY;
    return is_over_budget() ? LEFT_OUT_BUDGET : LEFT_OUT_NOT;
}
