/*
 * Loaded by CUDA itself, which CUDA_INJECTION64_PATH tells to: asks CUPTI when kernels and copies ran, and hands that over to
 * the recorder (preload/devices.h). Where there is none, or nothing is recorded, it opens nothing and does nothing.
 *
 * CUPTI fills buffers of ours and gives them back on a thread of its own, or on ours, which asks for what is complete ten times a second: what
 * a killed process did until then is on record.
 */
#define _GNU_SOURCE
#include "client.h"
#include "context.h"
#include "cupti.h"
#include "find.h"
#include "merge.h"

#include <dlfcn.h>
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* A record of a kernel has 200 bytes or so; at 10,000 a second a buffer is full after a tenth of a second. */
enum { BUFFER_BYTES = 256 << 10, ALIGNMENT = 64, AT_ONCE = 2048, FLUSH_NS = 100000000, END_WAITS_S = 1 };
#ifndef FLUSH_WAITS_S /* of MPI_Finalize; tests have less patience */
#define FLUSH_WAITS_S 10
#endif

static struct lapscope_devices *devices;
static struct cupti cupti;
static size_t handed_out, taken_back; /* buffers */
static int had_records, had_unended; /* of these some without the time when it ended */
static int failed;   /* CUPTI's first error at a flush of all: what it did not report then it does not report later */
static int has_kept; /* a buffer, at the last flush of all */
static char found_path[4096];
static pthread_mutex_t flushing = PTHREAD_MUTEX_INITIALIZER;
static int is_over; /* the process exits, and CUDA may be gone */
static int has_thread;
static uint32_t wanted, made; /* flushes of all, by our thread, what has not ended included */
static pid_t owner; /* a forked child has neither our thread nor a CUDA, and `flushing` as it was */

/* CUPTI's clock, too. */
static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* --- records ------------------------------------------------------------------------------------------------------ */

/* What waits to be handed over, on whatever thread CUPTI calls from. */
struct basket {
    struct lapscope_device_busy busy[AT_ONCE];
    size_t count, lost;
};

static void give(const struct lapscope_device_busy *busy, size_t count, uint64_t lost)
{
    void (*take)(const struct lapscope_device_busy *, size_t, uint64_t) = __atomic_load_n(&devices->take, __ATOMIC_ACQUIRE);
    if (take)
        take(busy, count, lost);
}

static void hand_over(struct basket *basket)
{
    give(basket->busy, merge_busy(basket->busy, basket->count), basket->lost);
    basket->count = basket->lost = 0;
}

static uint32_t work_of_copy(unsigned kind)
{
    switch (kind) {
    case CUPTI_COPY_TO_DEVICE:
    case CUPTI_COPY_TO_ARRAY:
        return DEVICE_TO_DEVICE;
    case CUPTI_COPY_TO_HOST:
    case CUPTI_COPY_FROM_ARRAY:
        return DEVICE_TO_HOST;
    default:
        return DEVICE_OTHER;
    }
}

/* Returns 0 of what is none of the kinds that were asked for: others are shorter than these. */
static int read_record(const struct cupti_record *record, struct lapscope_device_busy *busy)
{
    switch (record->kind) {
    case CUPTI_OF_KERNEL:
    case CUPTI_OF_CONCURRENT_KERNEL:
        *busy = (struct lapscope_device_busy){.device = record->kernel_device, .work = DEVICE_KERNEL};
        break;
    case CUPTI_OF_MEMCPY:
    case CUPTI_OF_PEER_MEMCPY:
        *busy = (struct lapscope_device_busy){.device = record->device, .work = work_of_copy(record->copy_kind)};
        break;
    case CUPTI_OF_MEMSET:
        *busy = (struct lapscope_device_busy){.device = record->device, .work = DEVICE_OTHER};
        break;
    default:
        return 0;
    }
    busy->begin_ns = (int64_t)record->start;
    busy->end_ns = (int64_t)record->end;
    return 1;
}

static void put(struct basket *basket, const struct lapscope_device_busy *busy)
{
    if (busy->begin_ns <= 0 || busy->end_ns < busy->begin_ns) { /* not known, or has not ended */
        __atomic_store_n(&had_unended, 1, __ATOMIC_RELAXED);
        return;
    }
    if (busy->end_ns == busy->begin_ns) /* shorter than a tick of the GPU's clock */
        return;
    if (basket->count == AT_ONCE)
        hand_over(basket);
    basket->busy[basket->count++] = *busy;
}

/* --- CUPTI's callbacks -------------------------------------------------------------------------------------------- */

static void requested(uint8_t **buffer, size_t *size, size_t *most_records)
{
    void *room = NULL;
    *size = posix_memalign(&room, ALIGNMENT, BUFFER_BYTES) == 0 ? BUFFER_BYTES : 0;
    *buffer = room;
    *most_records = 0; /* as many as fit */
    __atomic_fetch_add(&handed_out, room != NULL, __ATOMIC_RELAXED);
}

/* Of records for which CUPTI had no room; it counts anew then. */
static size_t dropped(void *context, uint32_t stream)
{
    size_t count = 0;
    cupti.ActivityGetNumDroppedRecords(context, stream, &count);
    return count;
}

static void completed(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
    (void)size;
    struct basket *basket = valid ? calloc(1, sizeof *basket) : NULL;
    struct cupti_record *record = NULL;
    struct lapscope_device_busy busy;
    while (basket && cupti.ActivityGetNextRecord(buffer, valid, &record) == CUPTI_OK) {
        __atomic_store_n(&had_records, 1, __ATOMIC_RELAXED);
        if (read_record(record, &busy))
            put(basket, &busy);
    }
    if (basket) {
        basket->lost += dropped(context, stream);
        hand_over(basket);
    } else if (valid) {
        give(NULL, 0, 1);
    }
    free(basket);
    free(buffer);
    __atomic_fetch_add(&taken_back, buffer != NULL, __ATOMIC_RELEASE);
}

/* Another client's records come to it whole. */
static uint32_t how_at_end(void)
{
    return client_came() ? 0 : CUPTI_FLUSH_FORCED;
}

/* Of all that was asked for. */
static void note_end(int error)
{
    if (!error)
        give(NULL, 0, dropped(NULL, 0));
    else if (!failed)
        __atomic_store_n(&failed, error, __ATOMIC_RELAXED);
}

/* Returns 0 when it is over. Another client's records are not ours to flush. As long as there are none at all, it is looked for contexts,
 * of which CUPTI would have told: they may be gone when MPI_Finalize comes. */
static int flush_by(uint32_t how)
{
    pthread_mutex_lock(&flushing);
    int goes_on = !__atomic_load_n(&is_over, __ATOMIC_ACQUIRE);
    if (goes_on && __atomic_load_n(&devices->take, __ATOMIC_ACQUIRE) && !client_has_asked()) {
        int error = cupti.ActivityFlushAll(how);
        if (how == CUPTI_FLUSH_FORCED) /* else it is said when it matters */
            note_end(error);
    }
    if (goes_on && !__atomic_load_n(&had_records, __ATOMIC_RELAXED))
        context_look();
    pthread_mutex_unlock(&flushing);
    return goes_on;
}

/* Waits are counted, and signals shorten none. */
static void wait_1_ms(void)
{
    struct timespec left = {.tv_nsec = 1000000};
    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        continue;
}

/* CUPTI may be giving one back at this moment, on a thread of its own. */
static int is_back(size_t were_out)
{
    for (int waits = 100; waits > 0 && __atomic_load_n(&taken_back, __ATOMIC_ACQUIRE) < were_out; waits--)
        wait_1_ms();
    return __atomic_load_n(&taken_back, __ATOMIC_ACQUIRE) >= were_out;
}

static int flush_all(void)
{
    size_t were_out = __atomic_load_n(&handed_out, __ATOMIC_RELAXED);
    int goes_on = flush_by(how_at_end());
    __atomic_store_n(&has_kept, !is_back(were_out), __ATOMIC_RELAXED);
    return goes_on;
}

static void *flush_now_and_then(void *none)
{
    const struct timespec pause = {.tv_nsec = FLUSH_NS};
    int goes_on;
    do {
        syscall(SYS_futex, &wanted, FUTEX_WAIT_PRIVATE, made, &pause, NULL, NULL, 0);
        uint32_t turn = __atomic_load_n(&wanted, __ATOMIC_ACQUIRE);
        goes_on = turn == made ? flush_by(0) : flush_all();
        __atomic_store_n(&made, turn, __ATOMIC_RELEASE);
    } while (goes_on);
    return none;
}

/* Has all flushed, and returns whether it was: CUPTI may wait for a lock of whoever is here, or for a driver that hangs, so our thread
 * flushes, and is waited for for so long at the most. A process that is stopped meanwhile goes on waiting. */
static int flush_within(int seconds)
{
    if (!has_thread) {
        flush_all();
        return 1;
    }
    uint32_t turn = __atomic_add_fetch(&wanted, 1, __ATOMIC_RELEASE);
    syscall(SYS_futex, &wanted, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, NULL, 0);
    for (int waits = 1000 * seconds; waits > 0 && !__atomic_load_n(&is_over, __ATOMIC_ACQUIRE); waits--) {
        if ((int32_t)(__atomic_load_n(&made, __ATOMIC_ACQUIRE) - turn) >= 0)
            return 1;
        wait_1_ms();
    }
    return 0;
}

__attribute__((format(printf, 1, 2))) static void say(const char *problem, ...)
{
    va_list values;
    va_start(values, problem);
    vsnprintf(devices->problem, sizeof devices->problem, problem, values);
    va_end(values);
}

/* What no later flush makes good. Returns 0 where there is nothing. */
static int say_what_is_lost(void)
{
    int error = __atomic_load_n(&failed, __ATOMIC_RELAXED);
    if (client_came())
        say("another tool in the process may have taken CUPTI over");
    else if (error)
        say("CUPTI gave error %d instead of its last records", error);
    else
        return 0;
    return 1;
}

/* Why there may be work that CUPTI, which has flushed all, has not reported. It is asked for contexts, too, as of programs that only open
 * their GPU; where none was seen there was no work. */
static const char *what_is_missing(void)
{
    if (__atomic_load_n(&has_kept, __ATOMIC_RELAXED))
        return "CUPTI has kept a buffer of records";
    if (__atomic_load_n(&had_unended, __ATOMIC_RELAXED))
        return "some GPU work had not ended, or CUPTI does not know its times";
    int is_silent = !__atomic_load_n(&had_records, __ATOMIC_RELAXED) && context_may_have_been();
    return is_silent ? "CUPTI has reported nothing, not even a context" : "";
}

static void flush(void)
{
    if (getpid() != owner)
        return;
    int is_flushed = flush_within(FLUSH_WAITS_S);
    if (say_what_is_lost())
        return;
    if (__atomic_load_n(&is_over, __ATOMIC_ACQUIRE))
        say("the process was ending before MPI_Finalize");
    else if (!is_flushed)
        say("some GPU work was not handed over by CUPTI within %d s", FLUSH_WAITS_S);
    else
        say("%s", what_is_missing());
}

/* May be within CUDA, or in a handler of an error. That work has not ended then is known of each rank that ends like this. */
static void flush_at_end(void)
{
    if (getpid() == owner && has_thread && flush_within(END_WAITS_S))
        say_what_is_lost();
}

/* Waits for what is under way, not for ever either. */
static void end_flushing(void)
{
    int is_held = 0;
    if (getpid() != owner)
        return;
    __atomic_store_n(&is_over, 1, __ATOMIC_RELEASE);
    for (int waits = 1000 * END_WAITS_S; !(is_held = pthread_mutex_trylock(&flushing) == 0) && waits > 0; waits--)
        wait_1_ms();
    if (is_held)
        pthread_mutex_unlock(&flushing);
}

/* --- the start ---------------------------------------------------------------------------------------------------- */

static int load(void *library)
{
    *(void **)&cupti.ActivityRegisterCallbacks = dlsym(library, "cuptiActivityRegisterCallbacks");
    *(void **)&cupti.ActivityRegisterTimestampCallback = dlsym(library, "cuptiActivityRegisterTimestampCallback");
    *(void **)&cupti.ActivityEnable = dlsym(library, "cuptiActivityEnable");
    *(void **)&cupti.ActivityGetNextRecord = dlsym(library, "cuptiActivityGetNextRecord");
    *(void **)&cupti.ActivityGetNumDroppedRecords = dlsym(library, "cuptiActivityGetNumDroppedRecords");
    *(void **)&cupti.ActivityFlushAll = dlsym(library, "cuptiActivityFlushAll");
    return cupti.ActivityRegisterCallbacks && cupti.ActivityRegisterTimestampCallback && cupti.ActivityEnable &&
           cupti.ActivityGetNextRecord && cupti.ActivityGetNumDroppedRecords && cupti.ActivityFlushAll;
}

static const char *const is_taken = "another tool in the process has CUPTI";
static int refusal; /* CUPTI's error, of the last one that was asked: CUptiResult in cupti_result.h */

/* Whether this CUPTI goes with the driver. */
static int use(void *library, const char *path)
{
    if (!load(library) || (refusal = cupti.ActivityRegisterTimestampCallback(now_ns)) != CUPTI_OK ||
        (refusal = cupti.ActivityRegisterCallbacks(requested, completed)) != CUPTI_OK ||
        (refusal = cupti.ActivityEnable(CUPTI_OF_CONCURRENT_KERNEL)) != CUPTI_OK)
        return 0;
    cupti.ActivityEnable(CUPTI_OF_MEMCPY);
    cupti.ActivityEnable(CUPTI_OF_PEER_MEMCPY);
    cupti.ActivityEnable(CUPTI_OF_MEMSET);
    cupti.ActivityEnable(CUPTI_OF_CONTEXT);
    const char *slash = strrchr(path, '/');
    snprintf(devices->source, sizeof devices->source, "%s", slash ? slash + 1 : path);
    return 1;
}

static void start_thread(void)
{
    pthread_t thread;
    owner = getpid();
    atexit(end_flushing);
    has_thread = pthread_create(&thread, NULL, flush_now_and_then, NULL) == 0;
    if (has_thread) /* else MPI_Finalize alone flushes, and CUPTI full buffers */
        pthread_detach(thread);
}

static const char *why_none(int is_loaded)
{
    if (!is_loaded || devices->shares)
        return "no CUPTI was found that goes with the driver";
    return client_is_linked() ? "the program is linked with CUPTI, and may profile itself" : is_taken;
}

static void say_why_not(int is_loaded)
{
    const char *why = is_taken;
    switch (refusal) {
    case 0:
        why = why_none(is_loaded);
        break;
    case CUPTI_MAX_LIMIT_REACHED:
    case CUPTI_MULTIPLE_SUBSCRIBERS:
        break;
    case CUPTI_INSUFFICIENT_PRIVILEGES:
    case CUPTI_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES:
        say("this user may not use CUPTI (error %d)", refusal);
        return;
    default:
        say("CUPTI gives error %d: it does not go with driver or GPU", refusal);
        return;
    }
    say("%s", why);
}

/* No other is opened then, which would get nothing beside it. */
static int use_loaded(const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
    return library && use(library, path);
}

static void begin_here(void)
{
    const char *loaded = client_library(); /* as PyTorch for its own profiler, which would be given buffers of ours */
    if (loaded ? devices->shares && use_loaded(loaded) : find_cupti(use)) {
        client_begin(devices->shares);
        context_begin();
        __atomic_store_n(&devices->asked, client_asked, __ATOMIC_RELEASE);
        start_thread();
        __atomic_store_n(&devices->flush, flush, __ATOMIC_RELEASE);
        __atomic_store_n(&devices->flush_at_end, flush_at_end, __ATOMIC_RELEASE);
    } else {
        snprintf(devices->source, sizeof devices->source, "CUPTI");
        say_why_not(loaded != NULL);
    }
    hand_over(&(struct basket){.count = 0}); /* it has begun */
}

/* Nobody waits for who does it, who may wait for CUDA. On no thread that CUPTI and we make a signal of the application's is handled. */
static void begin(void)
{
    static int has_begun;
    sigset_t all, before;
    if (__atomic_exchange_n(&has_begun, 1, __ATOMIC_SEQ_CST))
        return;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    begin_here();
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static int take_path(void *library, const char *path)
{
    snprintf(found_path, sizeof found_path, "%s", path);
    return load(library);
}

/* For `lapscope doctor`: the CUPTI that would be used, as far as that is known without the program; empty: none. */
__attribute__((visibility("default"))) const char *lapscope_find_cupti(void)
{
    if (!find_cupti(take_path))
        *found_path = '\0';
    return found_path;
}

__attribute__((visibility("default"))) int InitializeInjection(void)
{
    devices = dlsym(RTLD_DEFAULT, LAPSCOPE_DEVICES_SYMBOL);
    if (!devices || devices->version != LAPSCOPE_DEVICES_VERSION || devices->begin)
        return 1;
    __atomic_store_n(&devices->begin, begin, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&devices->take, __ATOMIC_SEQ_CST)) /* else it begins when something is recorded */
        begin();
    return 1;
}
