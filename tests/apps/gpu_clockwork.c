/*
 * A stand-in for CUDA's driver and for CUPTI, one file under both names, that keeps time: a kernel takes as long as its first argument
 * says, nanoseconds, a copy 1 ns for 10 bytes, one after the other on a stream. Functions have the names and arguments of cuda.h and
 * cupti_activity.h.
 */
#include "../../interposer/gpu/cupti.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { STREAMS = 16, RECORDS = 1 << 16, RECORD_BYTES = 208 /* of a kernel, in CUDA 12 */ };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t free_at[STREAMS];
static int streams = 1; /* 0 is the default stream */
static struct cupti_record ring[RECORDS];
static uint64_t first, end;
static size_t dropped;
static cupti_requested *requested;
static cupti_completed *completed;
static cupti_timestamp *timestamp;
static int is_enabled[64];

static uint64_t now_ns(void)
{
    struct timespec now;
    if (timestamp)
        return timestamp();
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void work(size_t stream, struct cupti_record record, uint64_t ns)
{
    pthread_mutex_lock(&lock);
    uint64_t now = now_ns();
    record.start = free_at[stream] > now ? free_at[stream] : now;
    record.end = free_at[stream] = record.start + ns;
    if (record.kind == CUPTI_OF_CONCURRENT_KERNEL)
        record.completed = record.end;
    if (is_enabled[record.kind] && end - first == RECORDS)
        dropped++;
    else if (is_enabled[record.kind])
        ring[end++ % RECORDS] = record;
    pthread_mutex_unlock(&lock);
}

/* --- the driver --------------------------------------------------------------------------------------------------- */

int cuInit(unsigned flags)
{
    static int is_injected;
    const char *path = getenv("CUDA_INJECTION64_PATH");
    void *injected = path && !is_injected++ ? dlopen(path, RTLD_NOW) : NULL;
    int (*initialize)(void) = injected ? (int (*)(void))dlsym(injected, "InitializeInjection") : NULL;
    return flags != 0 || (initialize && !initialize());
}

int cuDriverGetVersion(int *version)
{
    return *version = 13000, 0;
}

int cuDeviceGet(int *device, int ordinal)
{
    return *device = ordinal, ordinal != 0;
}

int cuCtxCreate_v2(void **context, unsigned flags, int device)
{
    return *context = &lock, flags != 0 || device != 0;
}

int cuModuleLoadData(void **module, const void *image)
{
    return *module = (void *)image, 0;
}

int cuModuleGetFunction(void **function, void *module, const char *name)
{
    return *function = module, !strstr(module, name);
}

int cuStreamCreate(void **stream, unsigned flags)
{
    (void)flags;
    return *stream = (void *)(size_t)streams++, streams > STREAMS;
}

int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
                   void *stream, void **parameters, void **extra)
{
    (void)function, (void)gx, (void)gy, (void)gz, (void)bx, (void)by, (void)bz, (void)shared, (void)extra;
    work((size_t)stream, (struct cupti_record){.kind = CUPTI_OF_CONCURRENT_KERNEL}, *(uint64_t *)parameters[0]);
    return 0;
}

int cuMemAlloc_v2(unsigned long long *address, size_t bytes)
{
    return *address = (unsigned long long)(size_t)malloc(bytes), !*address;
}

int cuMemcpyHtoDAsync_v2(unsigned long long to, const void *from, size_t bytes, void *stream)
{
    memcpy((void *)(size_t)to, from, bytes);
    work((size_t)stream, (struct cupti_record){.kind = CUPTI_OF_MEMCPY, .copy_kind = CUPTI_COPY_TO_DEVICE}, bytes / 10);
    return 0;
}

int cuMemcpyDtoHAsync_v2(void *to, unsigned long long from, size_t bytes, void *stream)
{
    memcpy(to, (void *)(size_t)from, bytes);
    work((size_t)stream, (struct cupti_record){.kind = CUPTI_OF_MEMCPY, .copy_kind = CUPTI_COPY_TO_HOST}, bytes / 10);
    return 0;
}

int cuStreamSynchronize(void *stream)
{
    pthread_mutex_lock(&lock);
    uint64_t until = free_at[(size_t)stream];
    pthread_mutex_unlock(&lock);
    struct timespec at = {.tv_sec = (time_t)(until / 1000000000), .tv_nsec = (long)(until % 1000000000)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL))
        continue;
    return 0;
}

/* --- CUPTI -------------------------------------------------------------------------------------------------------- */

int cuptiActivityRegisterCallbacks(cupti_requested *give, cupti_completed *take)
{
    requested = give;
    completed = take;
    return 0;
}

int cuptiActivityRegisterTimestampCallback(cupti_timestamp *callback)
{
    timestamp = callback;
    return 0;
}

int cuptiActivityEnable(int kind)
{
    return is_enabled[kind] = 1, 0;
}

/* The next record that has ended, or any. */
static int next_ended(struct cupti_record *record, int is_forced)
{
    pthread_mutex_lock(&lock);
    int is_there = first < end && (is_forced || ring[first % RECORDS].end <= now_ns());
    if (is_there)
        *record = ring[first++ % RECORDS];
    pthread_mutex_unlock(&lock);
    if (is_there && record->end > now_ns())
        record->end = 0;
    return is_there;
}

int cuptiActivityFlushAll(uint32_t flag)
{
    static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER; /* a record at a time, in their order */
    struct cupti_record record;
    pthread_mutex_lock(&turn);
    int is_there = next_ended(&record, (int)flag);
    while (is_there) {
        uint8_t *buffer = NULL;
        size_t size = 0, most = 0, valid = 0;
        requested(&buffer, &size, &most);
        if (!buffer)
            break;
        for (; is_there && valid + RECORD_BYTES <= size; is_there = next_ended(&record, (int)flag)) {
            memcpy(buffer + valid, &record, sizeof record);
            valid += RECORD_BYTES;
        }
        completed(NULL, 0, buffer, size, valid);
    }
    pthread_mutex_unlock(&turn);
    return 0;
}

int cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, struct cupti_record **record)
{
    uint8_t *next = *record ? (uint8_t *)*record + RECORD_BYTES : buffer;
    *record = (struct cupti_record *)(void *)next;
    return next + RECORD_BYTES > buffer + valid;
}

int cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream, size_t *lost)
{
    (void)context, (void)stream;
    *lost = dropped;
    dropped = 0;
    return 0;
}
