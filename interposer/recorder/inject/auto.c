#include "auto.h"

#include "../base/clock.h"
#include "../base/config.h"
#include "auto_page.h"
#include "pilot.h"

#include <string.h>

enum {
    THREAD_MULTIPLE = 3,      /* thread levels as spool.h has them */
    SHORTER = 4,              /* the second interval is so much shorter */
    REVIEW = 64,              /* posts, after which it is asked what steps are counted by */
    MOST_SITES = AUTO_MOST_SITES,
    ENOUGH_TESTS = 32, SELDOM = 64, /* tests at a site that find something less than once in so many are not made */
    CALLS_TO_LOOK = 4096,
    MOST_WRITTEN = 16         /* times into the database */
};

static const uint64_t gap_ns = 20000;           /* computation that is shorter is none to test in */
static const uint64_t idle_ns = 2000000000;
static const uint64_t silence_ns = 2000000000;  /* of what steps were counted by, while others post */

static struct {
    unsigned lock;
    struct auto_page page;                      /* what is told of it: with the pilot, arms and sites */
    struct { uint64_t ticks, pieces; } beside;  /* atomic */
    int plain;                                  /* stamps_are_plain, but for injection */
    int stays_awake;
    int asked;                                  /* level of threads */
    struct inject_site *anchor;                 /* steps are counted by its posts */
    uint64_t anchor_posted;                     /* wall clock; likewise */
    unsigned posts;
    int leaves_none_out;
    unsigned written, decided;
    int is_started, is_over;
} automatic;

static struct pilot *const pilot = &automatic.page.pilot;

static uint64_t wall_clock(void)
{
    return clock_nanoseconds(CLOCK_REALTIME);
}

/* --- arms --------------------------------------------------------------------------------------------------------- */

static void add_arm(enum inject_mode mode, uint64_t interval_us)
{
    automatic.page.arms[pilot->arms++] = (struct auto_arm){.mode = mode, .interval_us = interval_us};
}

static uint64_t shorter(uint64_t interval_us)
{
    return interval_us / SHORTER > 20 ? interval_us / SHORTER : 20;
}

/* A thread beside the application's needs a level that costs each call something: with auto it is never asked for, but
 * taken where the application has it anyway. */
static void list_arms(void)
{
    uint64_t interval = (uint64_t)config.inject_interval_us;
    add_arm(INJECT_OFF, 0);
    add_arm(INJECT_TIMER, interval);
    add_arm(INJECT_CALLS, shorter(interval));
    if (shorter(interval) < interval)
        add_arm(INJECT_TIMER, shorter(interval));
    if (automatic.asked == THREAD_MULTIPLE && recorder_multiple)
        add_arm(INJECT_THREAD, interval);
    pilot->usable = (1u << pilot->arms) - 1;
}

void auto_asked_for(int level)
{
    automatic.asked = level;
}

/* What was lost meanwhile. */
static void take_losses(uint64_t now)
{
    unsigned lost = __atomic_exchange_n(&injection.lost, 0, __ATOMIC_ACQUIRE);
    for (unsigned arm = 1; arm < pilot->arms; arm++) {
        enum inject_mode mode = automatic.page.arms[arm].mode;
        if (!(lost >> mode & 1))
            continue;
        automatic.page.arms[arm].problem = injection.problems[mode];
        pilot_lose(pilot, arm, now);
    }
}

/* Returns 0 when the arm cannot be had. */
static int prepare(struct injector *injector, struct auto_arm *arm)
{
    static int is_prepared[INJECT_MODES];
    if (is_prepared[arm->mode])
        return 1;
    uint64_t cpu_began = clock_nanoseconds(CLOCK_THREAD_CPUTIME_ID);
    const char *why = inject_prepare_mode(injector, arm->mode);
    uint64_t cost = clock_nanoseconds(CLOCK_THREAD_CPUTIME_ID) - cpu_began;
    inject_spend(inject_ticks(cost));
    pilot_spent_once(pilot, cost);
    if (why)
        inject_lose(arm->mode, why);
    return is_prepared[arm->mode] = !why;
}

static void put_in_force(struct injector *injector, uint64_t now)
{
    unsigned arm = pilot->arm;
    if (arm == injection.arm && automatic.page.arms[arm].mode == injection.mode)
        return;
    if (arm && !prepare(injector, &automatic.page.arms[arm])) {
        take_losses(now);
        arm = 0;
    }
    injection.mode = INJECT_OFF; /* whoever tests meanwhile does so with one arm's interval and in that arm's way */
    injection.arm = arm;
    if (arm)
        injection.interval = inject_ticks(automatic.page.arms[arm].interval_us * 1000);
    injection.mode = automatic.page.arms[arm].mode;
}

/* --- asleep, and awake -------------------------------------------------------------------------------------------- */

static void set_awake(int is_awake)
{
    stamps_are_plain = is_awake || automatic.stays_awake ? 0 : automatic.plain;
}

void auto_stays_awake(void)
{
    automatic.stays_awake = 1;
    stamps_are_plain = 0;
}

/* Nobody waits: what one thread is told of is as good as what the other is. */
static int try_lock(void)
{
    return !__atomic_exchange_n(&automatic.lock, 1, __ATOMIC_ACQUIRE);
}

static void unlock(void)
{
    __atomic_store_n(&automatic.lock, 0, __ATOMIC_RELEASE);
}

/* Many calls without a large request. */
static __attribute__((noinline)) void look_for_idleness(struct injector *injector)
{
    if (inject_pending(injector) || !try_lock())
        return;
    uint64_t now = wall_clock();
    if (now - automatic.page.last_post > idle_ns) {
        pilot_idle(pilot, now);
        put_in_force(injector, now);
        set_awake(0);
    }
    unlock();
}

void auto_entered(struct injector *injector)
{
    if (injector->computes_since) {
        uint64_t ticks = clock_now() - injector->computes_since;
        injector->computes_since = 0;
        if (ticks > inject_ticks(gap_ns) && inject_pending(injector)) { /* those that the last call completed end behind it */
            __atomic_fetch_add(&automatic.beside.ticks, ticks, __ATOMIC_RELAXED);
            __atomic_fetch_add(&automatic.beside.pieces, 1, __ATOMIC_RELAXED);
        }
    }
    if (UNLIKELY(++injector->calls % CALLS_TO_LOOK == 0))
        look_for_idleness(injector);
}

void auto_left(struct injector *injector)
{
    injector->computes_since = pilot->phase == PILOT_WATCHES && inject_pending(injector) ? clock_now() : 0;
}

/* --- sites -------------------------------------------------------------------------------------------------------- */

/* Steps are counted by the posts to one peer at the site that posts most. Another has to post many times as much to take its
 * place, or it has to fall silent. */
static void review(struct inject_site *site, uint64_t now)
{
    struct inject_site *most = site;
    for (unsigned i = 0; i < automatic.page.site_count; i++)
        if (automatic.page.sites[i]->automatic.recent > most->automatic.recent)
            most = automatic.page.sites[i];
    uint64_t silence = 16ull << pilot->shift;
    int is_silent = now - automatic.anchor_posted > (silence > silence_ns ? silence : silence_ns);
    if (most->automatic.recent / 4 > automatic.anchor->automatic.recent || is_silent) {
        automatic.anchor = is_silent && most == automatic.anchor ? site : most;
        automatic.anchor->automatic.peer = INT32_MIN; /* the next one that it posts to */
        automatic.anchor_posted = now;
        pilot_changed(pilot, now);
    }
    for (unsigned i = 0; i < automatic.page.site_count; i++)
        automatic.page.sites[i]->automatic.recent /= 4;
}

/* Whether steps are counted by this post. */
static int is_step(struct inject_site *site, const struct operation *operation, uint64_t now)
{
    struct auto_site *known = &site->automatic;
    if (UNLIKELY(!known->is_listed)) {
        known->is_listed = 1;
        known->peer = INT32_MIN;
        if (automatic.page.site_count < MOST_SITES)
            automatic.page.sites[automatic.page.site_count++] = site;
    }
    known->bytes += operation->key.bytes;
    known->recent += operation->key.bytes;
    if (!automatic.anchor) {
        automatic.anchor = site;
        automatic.anchor_posted = now;
    }
    if (++automatic.posts % REVIEW == 0)
        review(site, now);
    if (site != automatic.anchor)
        return 0;
    if (known->peer == INT32_MIN)
        known->peer = operation->key.peer;
    if (operation->key.peer != known->peer)
        return 0;
    automatic.anchor_posted = now;
    return 1;
}

static void begin_to_judge_sites(void)
{
    for (unsigned i = 0; i < automatic.page.site_count; i++) {
        struct inject_site *site = automatic.page.sites[i];
        site->automatic.is_left_out = 0;
        site->automatic.tests = site->sums->tests;
        site->automatic.found = site->sums->found;
    }
}

/* Tests that found nothing at a site, while arms took turns, are not made there any more. Where a gain was lost after that,
 * it is not done again. */
static void judge_sites(void)
{
    for (unsigned i = 0; i < automatic.page.site_count && !automatic.leaves_none_out; i++) {
        struct inject_site *site = automatic.page.sites[i];
        uint64_t tests = site->sums->tests - site->automatic.tests, found = site->sums->found - site->automatic.found;
        site->automatic.is_left_out = tests >= ENOUGH_TESTS && found * SELDOM < tests;
    }
}

/* --- what is told ------------------------------------------------------------------------------------------------- */

static void write_fact(struct thread *t)
{
    static char text[AUTO_PAGE_BYTES];
    if (automatic.written++ < MOST_WRITTEN && auto_page_text(&automatic.page, text, sizeof text))
        spool_define_meta(&t->stream, "auto", text);
}

static enum pilot_event last_event(void)
{
    unsigned count = pilot->decided < PILOT_DECISIONS ? pilot->decided : PILOT_DECISIONS;
    return pilot->decisions[count - 1].event;
}

/* Something was decided. */
static void follow(struct thread *t)
{
    automatic.decided = pilot->decided;
    switch (last_event()) {
    case PILOT_EXPLORE:
        begin_to_judge_sites();
        break;
    case PILOT_KEEP:
        judge_sites();
        write_fact(t);
        break;
    case PILOT_OFF:
        write_fact(t);
        break;
    case PILOT_CHANGED:
    case PILOT_WITHOUT:
        for (unsigned i = 0; i < automatic.page.site_count; i++)
            automatic.leaves_none_out |= automatic.page.sites[i]->automatic.is_left_out;
        begin_to_judge_sites();
        break;
    default:
        break;
    }
}

/* An arm that is tried out keeps to the budget in its own slots: it gains there what it would gain if it were kept.
 * With a budget of the whole run, a quarter of the time could spend what may not be spent throughout, and promise a
 * gain that is not kept. Leaving an arm out that costs more than the budget is worse: ranks differ about one that costs
 * about as much. */
static void keep_to_budget(uint64_t now)
{
    struct pilot_cost cost = pilot_cost(pilot, now);
    inject_spent_is(inject_ticks(cost.ns), inject_ticks(cost.of_ns), clock_now());
}

static void know_costs(void)
{
    pilot->spent_ns = inject_ns(__atomic_load_n(&injection.spent, __ATOMIC_RELAXED));
    pilot->beside.ns = inject_ns(__atomic_load_n(&automatic.beside.ticks, __ATOMIC_RELAXED));
    pilot->beside.pieces = __atomic_load_n(&automatic.beside.pieces, __ATOMIC_RELAXED);
}

int auto_posted(struct injector *injector, struct inject_site *site, const struct operation *operation)
{
    injector->calls = 0;
    if (!try_lock())
        return injection.mode != INJECT_OFF;
    uint64_t now = wall_clock();
    automatic.page.last_post = now;
    know_costs();
    take_losses(now);
    pilot_post(pilot, now, is_step(site, operation, now));
    if (UNLIKELY(pilot->decided != automatic.decided))
        follow(injector->thread);
    put_in_force(injector, now);
    if (pilot->arm)
        keep_to_budget(now);
    set_awake(pilot->phase != PILOT_SLEEPS);
    unlock();
    return pilot->phase != PILOT_SLEEPS && !site->automatic.is_left_out;
}

/* --- the start and the end ---------------------------------------------------------------------------------------- */

void auto_start(const char *job, inject_run_directory *run)
{
    automatic.page.job = job;
    automatic.page.run = run;
    automatic.plain = stamps_are_plain;
    inject_timer_note_mpi();
    list_arms();
    pilot->seed = text_hash(job, strlen(job));
    pilot->budget = (unsigned)config.inject_budget;
    pilot_begin(pilot, wall_clock());
    large_posts = (uint64_t)config.inject_min_bytes;
    automatic.is_started = 1;
}

void auto_end(struct thread *t)
{
    if (!automatic.is_started || automatic.is_over)
        return;
    automatic.is_over = 1;
    large_posts = UINT64_MAX;
    know_costs();
    automatic.page.ended = wall_clock();
    if (t) {
        automatic.written = 0; /* the last word */
        write_fact(t);
    }
    auto_page_write(&automatic.page);
    const struct spool_file_header *header = spool_header();
    if (header->rank == 0 && header->world == 1 && !config.quiet)
        auto_page_say(&automatic.page);
}
