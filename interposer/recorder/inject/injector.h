/* What the ways of injecting tests have in common: inject.c opens windows, timer.c and helper_thread.c use them. */
#ifndef LAPSCOPE_INJECTOR_H
#define LAPSCOPE_INJECTOR_H

#include "../base/slots.h"
#include "../sends/copies.h"
#include "alarm.h"
#include "inject.h"

enum inject_mode {
    INJECT_OFF = CONFIG_INJECT_OFF,
    INJECT_CALLS = CONFIG_INJECT_CALLS,
    INJECT_TIMER = CONFIG_INJECT_TIMER,
    INJECT_THREAD = CONFIG_INJECT_THREAD,
    INJECT_MODES                    /* `auto` is none: it switches among these */
};

enum { INJECT_ARMS = 6 };           /* of auto; otherwise there is one, 0 */

/* A call site whose requests are large enough. */
struct inject_site {
    uint64_t hash;                  /* see intern.h */
    struct {
        uint32_t path, call;
    } key;
    struct spool_injection *sums;   /* in the spool */
    struct {
        unsigned level;             /* the interval is doubled so often */
        unsigned idle;              /* occasions in a row that found nothing */
    } pace[INJECT_ARMS];
    struct auto_site {              /* auto.c */
        int is_listed, is_left_out;
        int32_t peer;               /* steps are counted by posts to it, where they are counted by this site */
        uint64_t bytes, recent;     /* posted; since the last review */
        uint64_t tests, found;      /* of its sums, when the exploration began */
    } automatic;
};

/* A thread's own. */
struct injector {
    struct thread *thread;
    unsigned pending;               /* requests that tests are made for; atomic: other threads may end them */
    unsigned serves_copies;         /* 1: tests are made for copies of sends (sends/), too, which belong to no thread; atomic */
    struct inject_site *site;       /* of the one posted last */
    uint64_t next_test;             /* ticks */
    int in_mpi;                     /* the real call is under way */
    int will_reduce, reduces;       /* the call to come or under way does, with an operation of the application's */
    uint64_t computes_since;        /* auto: it left MPI with windows open, at that time; 0: it did not */
    unsigned calls;                 /* auto: since a large request was posted */
    struct intern_table sites;
    /* timer */
    struct alarm alarm;
    int is_set;                     /* the alarm is */
    int is_masked;                  /* the program blocks its signal */
    volatile int measuring;
    char *stack_top, *spare_stack;  /* that of the handler; the alternate one of faults meanwhile */
};

/* The process's. Durations in ticks. */
struct injection {
    enum inject_mode mode;          /* in force */
    unsigned arm;                   /* likewise, of auto */
    int is_auto;
    int is_on;
    const char *problem;            /* why it is not on; NULL: there is none */
    unsigned lost;                  /* auto: modes that cannot be had any more, a bit for each, since that was looked at; atomic */
    const char *problems[INJECT_MODES]; /* why not */
    uint64_t began;                 /* of what the budget is a share; atomic */
    uint64_t interval;
    uint64_t spent;                 /* cost that bought nothing; atomic */
    enum alarm_clock clock;         /* that interrupts under timer */
    uint64_t interrupt, check;      /* measured; check in nanoseconds */
    uint64_t last_large;            /* ticks: when a request was last posted that is large enough; atomic */
    unsigned testers;               /* threads that are about to test; atomic */
    int is_gated;                   /* no test may be made while another thread is inside MPI */
    unsigned reductions;            /* pending ones with an operation of the application's; atomic */
    struct slots slots;             /* LAPSCOPE_INJECT_AB */
};

extern struct injection injection;

enum { MOST_LEVELS = 4 };

/* Nothing more is injected, for this reason (a constant). For signal handlers too. */
void inject_fail(const char *problem);
/* The same where there are other ways than this one: not in that way. */
void inject_lose(enum inject_mode mode, const char *problem);

uint64_t inject_ticks(uint64_t ns);
uint64_t inject_ns(uint64_t ticks);

/* How long to wait before the next cost keeps to the budget; 0: it does already. */
uint64_t inject_over_budget(uint64_t now);
/* So many more ticks the rank could have run and had no processor. The budget is a share of the time in which it had one or needed
 * none: where processors are short, tests of all ranks together would take them from the computation. */
void inject_starved(uint64_t ticks);
/* For the budget, what was spent until now is this cost, in so long a time. */
void inject_spent_is(uint64_t cost, uint64_t of, uint64_t now);
static inline void inject_spend(uint64_t ticks)
{
    __atomic_fetch_add(&injection.spent, ticks, __ATOMIC_RELAXED);
}

/* Whether tests may be made now; then they are ended by inject_tested(). `self`: a thread that may be inside MPI, or
 * NULL. */
int inject_may_test(const struct thread *self);
void inject_tested(void);
void inject_wait_for_testers(void);
/* From now on nobody tests while another thread is inside MPI. */
void inject_close_gate(void);

/* Whatever that way needs, and a thread of it; returns NULL, or why it cannot be had. */
const char *inject_prepare_mode(struct injector *injector, enum inject_mode mode);
const char *inject_mode_name(enum inject_mode mode);

/* What tests took, as in struct progress. */
struct tested {
    uint64_t used, passed;
};

/* Tests until nothing more moves. */
struct tested inject_test(struct injector *injector);
/* The same in the application's own thread: the time is inside MPI. Returns how much passed. */
uint64_t inject_test_here(struct injector *injector);

/* The interval until the next test. */
static inline uint64_t inject_interval(const struct injector *injector)
{
    return injection.interval << injector->site->pace[injection.arm].level;
}

static inline unsigned inject_pending(const struct injector *injector)
{
    unsigned copies = __atomic_load_n(&injector->serves_copies, __ATOMIC_ACQUIRE) && copies_under_way();
    return __atomic_load_n(&injector->pending, __ATOMIC_ACQUIRE) + copies;
}

static inline int inject_uses_timer(void)
{
    return config.inject == INJECT_TIMER || config.inject == CONFIG_INJECT_AUTO;
}

/* timer.c; around MPI's start, and then: returns NULL, or why it cannot. */
void inject_timer_before_start(void);
void inject_timer_behind_start(void);
/* Draws the line between the program's libraries and MPI's, where the rest is prepared later. */
void inject_timer_note_mpi(void);
const char *inject_timer_prepare(void);
const char *inject_timer_open(struct injector *injector);
static inline int inject_timer_is_open(const struct injector *injector)
{
    return injector->alarm.clock != ALARM_NONE;
}
void inject_timer_close(struct injector *injector);
/* Leaves no alarm set and the signal as it was. */
void inject_timer_end(void);
/* A window is open, and the thread is about to compute. */
void inject_timer_window(struct injector *injector);

/* helper_thread.c; likewise. */
const char *inject_helper_prepare(void);
void inject_helper_window(void);
void inject_helper_end(void);

#endif
