#include "meter.h"

#include "../base/arena.h"
#include "../base/config.h"
#include "../base/cpu_time.h"
#include "../base/intern.h"
#include "../spool/codec.h"
#include "counters.h"

struct meter {
    struct cpu_time cpu_begin, cpu_end;
    struct counters *counters;             /* NULL: none */
    unsigned count;
    int ended;                             /* the call that was entered last has returned, and `end` and cpu_end are its */
    int counted;                           /* `begin` and `end` are known, too */
    int begun, missed;                     /* a call was entered; some of what came between calls was not counted */
    int64_t begin[SPOOL_MAX_COUNTERS], end[SPOOL_MAX_COUNTERS];
    int64_t outside[SPOOL_MAX_COUNTERS];   /* counted outside of MPI, up to the entry of that call */
    struct intern_table posts;             /* struct post, of every live entry that this thread has used */
};

/* What had been counted outside of MPI when a request was posted. */
struct post {
    uint64_t hash;
    const struct spool_live *live;
    int64_t outside[SPOOL_MAX_COUNTERS];
};

_Static_assert(METER_ROOM >= (1 + SPOOL_MAX_COUNTERS / SPOOL_COUNTERS_A_RECORD) * (SPOOL_HOT_HEAD + 7 * SPOOL_HOT_FIELDS),
               "room for CPU time and all counters");

int meters_wanted(void)
{
    return config.record == CONFIG_RECORD_ON && (config.cpu_time || counters_counted());
}

struct meter *meter_create(void)
{
    struct meter *meter = meters_wanted() ? arena_alloc(sizeof *meter) : NULL;
    if (!meter)
        return NULL;
    meter->counters = counters_start();
    meter->count = counters_counted();
    return meter;
}

void meter_thread_ended(struct meter *meter)
{
    if (meter->counters)
        counters_stop(meter->counters);
}

void meter_take_over(struct meter *meter)
{
    meter->ended = meter->counted = meter->begun = 0;
    if (meter->counters)
        counters_start_again(meter->counters);
}

/* Where the call before this one has not been seen to return (the application has jumped out of it), what was counted
 * since its entry is neither inside nor outside. */
void meter_enter(struct meter *meter)
{
    int has_end = meter->ended && meter->counted;
    meter->ended = 0;
    if (meter->counters) {
        meter->counted = counters_read(meter->counters, meter->begin);
        for (unsigned i = 0; has_end && meter->counted && i < meter->count; i++)
            meter->outside[i] += meter->begin[i] - meter->end[i];
        meter->missed |= !meter->counted || (meter->begun && !has_end);
        meter->begun = 1;
    }
    if (config.cpu_time)
        meter->cpu_begin = cpu_time_now();
}

void meter_leave(struct meter *meter)
{
    if (config.cpu_time)
        meter->cpu_end = cpu_time_now();
    if (meter->counters)
        meter->counted = meter->counted && counters_read(meter->counters, meter->end);
    meter->ended = 1;
}

int meter_add_outside(const struct meter *meter, int64_t values[SPOOL_MAX_COUNTERS])
{
    for (unsigned i = 0; i < meter->count; i++)
        values[i] += meter->outside[i];
    return meter->counters && !meter->missed;
}

static struct post *post_of(struct meter *meter, const struct spool_live *live, int make)
{
    uint64_t hash = intern_hash(&live, sizeof live);
    void **slot = intern_find(&meter->posts, hash, &live, sizeof live);
    if (slot && !*slot && make) {
        struct post *post = arena_alloc(sizeof *post);
        if (!post)
            return NULL;
        post->hash = hash;
        post->live = live;
        *slot = post;
        meter->posts.count++;
    }
    return slot ? *slot : NULL;
}

void meter_post(struct meter *meter, const struct spool_live *live)
{
    struct post *post = meter->counted ? post_of(meter, live, 1) : NULL;
    for (unsigned i = 0; post && i < meter->count; i++)
        post->outside[i] = meter->outside[i];
}

/* Values that a record cannot hold belong to counters that are not sums: then nothing is written. */
static unsigned char *put_values(unsigned char *at, const int64_t *values, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        if (spool_zigzag(values[i]) >> 56)
            return at;
    for (unsigned first = 0; first < count; first += SPOOL_COUNTERS_A_RECORD) {
        uint64_t fields[SPOOL_HOT_FIELDS] = {first};
        for (unsigned i = 0; i < SPOOL_COUNTERS_A_RECORD && first + i < count; i++)
            fields[1 + i] = spool_zigzag(values[first + i]);
        at = spool_put(at, SPOOL_COUNTERS, fields, SPOOL_HOT_FIELDS);
    }
    return at;
}

unsigned char *meter_put_call(const struct meter *meter, unsigned char *at)
{
    int64_t values[SPOOL_MAX_COUNTERS];
    if (!meter->ended)
        return at;
    if (config.cpu_time) {
        struct cpu_time spent = cpu_time_between(meter->cpu_begin, meter->cpu_end);
        uint64_t fields[] = {spent.total_ns - spent.system_ns, spent.system_ns};
        at = spool_put(at, SPOOL_CPU, fields, 2);
    }
    if (!meter->counted)
        return at;
    for (unsigned i = 0; i < meter->count; i++)
        values[i] = meter->end[i] - meter->begin[i];
    return put_values(at, values, meter->count);
}

unsigned char *meter_put_request(struct meter *meter, const struct spool_live *live, unsigned char *at)
{
    int64_t values[SPOOL_MAX_COUNTERS];
    const struct post *post = meter->counted ? post_of(meter, live, 0) : NULL;
    if (!post)
        return at;
    for (unsigned i = 0; i < meter->count; i++)
        values[i] = meter->outside[i] - post->outside[i];
    return put_values(at, values, meter->count);
}
