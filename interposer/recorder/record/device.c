#include "device.h"

#include "../../preload/devices.h"
#include "../base/clock.h"
#include "../base/config.h"
#include "../base/pause.h"
#include "../base/uncancelled.h"
#include "../spool/writer.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

_Static_assert(sizeof((struct lapscope_devices *)0)->source == sizeof((struct spool_device_state *)0)->source &&
                   sizeof((struct lapscope_devices *)0)->problem == sizeof((struct spool_device_state *)0)->problem, "texts");

enum { MOST_DEVICES = 32, ROWS_A_RESOLUTION = 1 << 15, FIRST_RESOLUTION_NS = 10000, CHUNK_BYTES = SPOOL_CHUNK_ALIGN };

/* Plugins have threads of their own; MPI is never called while it is held. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct lapscope_devices *seam;
static struct spool_device_state *state; /* in the spool; NULL: no plugin has come */
static struct spool_device_busy *next, *end_of_chunk;
static struct spool_device_busy *latest[MOST_DEVICES][DEVICE_WORKS]; /* the row that ends last */
static uint64_t rows, resolution_ticks;

static uint64_t ticks_of_ns(uint64_t ns)
{
    return clock_ticks(ns, spool_header()->nominal_ticks_per_ns);
}

/* Of a moment that is not long ago, in nanoseconds of CLOCK_MONOTONIC, by the same moment `now` on both clocks. */
static uint64_t ticks_at(int64_t ns, const struct spool_clock_pair *now)
{
    return ns < now->monotonic_ns ? now->ticks - ticks_of_ns((uint64_t)(now->monotonic_ns - ns)) : now->ticks;
}

/* Returns 0 where the spool cannot grow. */
static int new_chunk(int is_first)
{
    struct spool_chunk *chunk = is_first ? spool_new_device_chunk(CHUNK_BYTES)
                                         : spool_new_chunk(SPOOL_CHUNK_DEVICE, 0, CHUNK_BYTES, 0, 0);
    if (!chunk)
        return 0;
    unsigned char *at = (unsigned char *)(chunk + 1);
    if (is_first) {
        state = (struct spool_device_state *)at;
        at += sizeof *state;
    }
    next = (struct spool_device_busy *)at;
    end_of_chunk = next + (size_t)((unsigned char *)chunk + chunk->bytes - at) / sizeof *next;
    return 1;
}

static int has_state(void)
{
    if (state)
        return 1;
    if (!new_chunk(1))
        return 0;
    memcpy(state->source, seam->source, sizeof state->source);
    memcpy(state->problem, seam->problem, sizeof state->problem);
    state->resolution_ns = FIRST_RESOLUTION_NS;
    resolution_ticks = ticks_of_ns(FIRST_RESOLUTION_NS);
    return 1;
}

static void coarsen(void)
{
    rows = 0;
    resolution_ticks *= 2;
    state->resolution_ns *= 2;
}

/* What a killed process leaves is sound after each store: a row is never busier than it is long. */
static void extend(struct spool_device_busy *row, uint64_t begin, uint64_t end)
{
    uint64_t row_end = row->begin + row->ticks;
    if (end <= row_end)
        return;
    uint64_t more = end - (begin > row_end ? begin : row_end);
    __atomic_store_n(&row->ticks, end - row->begin, __ATOMIC_RELEASE);
    __atomic_store_n(&row->busy_ticks, row->busy_ticks + more, __ATOMIC_RELEASE);
}

static void append(const struct lapscope_device_busy *busy, uint64_t begin, uint64_t end)
{
    if (next == end_of_chunk && !new_chunk(0)) {
        state->lost++;
        return;
    }
    struct spool_device_busy *row = next++, **last = &latest[busy->device][busy->work];
    row->begin = begin;
    row->ticks = row->busy_ticks = end - begin;
    row->device = busy->device;
    __atomic_store_n(&row->work_plus_1, busy->work + 1, __ATOMIC_RELEASE);
    if (!*last || end > (*last)->begin + (*last)->ticks)
        *last = row;
    if (++rows == ROWS_A_RESOLUTION)
        coarsen();
}

static void take_one(const struct lapscope_device_busy *busy, const struct spool_clock_pair *now)
{
    if (busy->device >= MOST_DEVICES || busy->work >= DEVICE_WORKS || busy->end_ns <= busy->begin_ns) {
        state->lost++;
        return;
    }
    uint64_t first = spool_header()->first.ticks;
    uint64_t begin = ticks_at(busy->begin_ns, now), end = ticks_at(busy->end_ns, now);
    if (end <= first)
        return; /* before the recording */
    begin = begin > first ? begin : first;
    struct spool_device_busy *last = latest[busy->device][busy->work];
    if (last && begin >= last->begin && begin <= last->begin + last->ticks + resolution_ticks)
        extend(last, begin, end);
    else
        append(busy, begin, end);
}

static void take(const struct lapscope_device_busy *busy, size_t count, uint64_t lost)
{
    int saved_errno = errno;
    pthread_mutex_lock(&lock);
    if (__atomic_load_n(&seam->take, __ATOMIC_RELAXED) && has_state()) {
        struct spool_clock_pair now = clock_true_pair();
        state->lost += lost;
        for (size_t i = 0; i < count; i++)
            take_one(&busy[i], &now);
    }
    pthread_mutex_unlock(&lock);
    errno = saved_errno;
}

void device_meet(struct lapscope_devices *devices)
{
    seam = devices->version == LAPSCOPE_DEVICES_VERSION ? devices : NULL;
}

void device_start(void)
{
    if (!seam)
        return;
    seam->shares = config.cupti == CONFIG_CUPTI_SHARE;
    __atomic_store_n(&seam->take, take, __ATOMIC_SEQ_CST);
    void (*begin)(void) = __atomic_load_n(&seam->begin, __ATOMIC_SEQ_CST); /* else it comes later, and sees `take` */
    if (begin)
        begin();
}

/* Not for ever: a handler of a signal that ends the process may have interrupted `take`. */
static int lock_at_end(void)
{
    int is_held = 0;
    for (int i = 0; i < 1000 && !(is_held = pthread_mutex_trylock(&lock) == 0); i++)
        pause_1_ms();
    return is_held;
}

static void keep_problem(void)
{
    if (state)
        memcpy(state->problem, seam->problem, sizeof state->problem);
}

void device_flush(void)
{
    void (*flush)(void) = seam ? __atomic_load_n(&seam->flush, __ATOMIC_ACQUIRE) : NULL;
    if (!flush)
        return;
    int cancel_state = uncancelled_begin();
    flush();
    pthread_mutex_lock(&lock);
    keep_problem();
    pthread_mutex_unlock(&lock);
    uncancelled_end(cancel_state);
}

void device_flush_at_end(void)
{
    void (*flush)(void) = seam ? __atomic_load_n(&seam->flush_at_end, __ATOMIC_ACQUIRE) : NULL;
    if (!flush)
        return;
    flush();
    if (lock_at_end()) {
        keep_problem();
        pthread_mutex_unlock(&lock);
    }
}

void device_forget(void)
{
    if (seam)
        __atomic_store_n(&seam->take, NULL, __ATOMIC_RELEASE);
}

void device_stop(void)
{
    int is_held = lock_at_end();
    device_forget();
    if (is_held)
        pthread_mutex_unlock(&lock);
}
