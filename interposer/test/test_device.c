/* A plugin of no vendor hands over when devices worked: what of it stands in the spool, at once. */
#include "bring_up.h"
#include "check.h"

#include "../preload/devices.h"
#include "../recorder/base/clock.h"
#include "../recorder/record/device.h"
#include "../recorder/spool/reader.h"

#include <stdlib.h>

static struct lapscope_devices devices = {.version = LAPSCOPE_DEVICES_VERSION};
static int begun, flushed;

static void flush(void)
{
    flushed++;
    strcpy(devices.problem, "at the end of MPI");
}

static void flush_at_end(void)
{
    strcpy(devices.problem, "at an abort");
}

static void begin(void)
{
    begun++;
    strcpy(devices.source, "test");
    devices.flush = flush;
    devices.flush_at_end = flush_at_end;
    devices.take(NULL, 0, 0);
}

struct found {
    size_t rows;
    uint64_t ticks, busy_ticks;
    struct spool_device_state state;
    struct spool_device_busy last;
};

/* As whoever converts the spool of a killed process. */
static struct found found(void)
{
    struct found all = {0};
    struct spool_file file;
    char error[256] = "";
    CHECK_EQUAL(spool_file_open(&file, bring_up_path(), error, sizeof error), 0);
    for (size_t part = 0; part < file.part_count; part++) {
        const struct spool_device_state *state;
        size_t count;
        if (file.parts[part].kind != SPOOL_CHUNK_DEVICE)
            continue;
        const struct spool_device_busy *rows = spool_device_entries(&file.parts[part], &count, &state);
        if (state)
            all.state = *state;
        for (size_t i = 0; i < count && rows[i].work_plus_1; i++, all.rows++) {
            all.ticks += rows[i].ticks;
            all.busy_ticks += rows[i].busy_ticks;
            all.last = rows[i];
        }
    }
    spool_file_close(&file);
    return all;
}

static int64_t now_ns(void)
{
    return (int64_t)clock_nanoseconds(CLOCK_MONOTONIC);
}

static void take(int64_t begin_ns, int64_t end_ns, uint32_t device, uint32_t work)
{
    devices.take(&(struct lapscope_device_busy){begin_ns, end_ns, device, work}, 1, 0);
}

static uint64_t ns(uint64_t ticks)
{
    return clock_ns(ticks, spool_header()->nominal_ticks_per_ns);
}

static void wait_until(int64_t end)
{
    while (now_ns() < end)
        continue;
}

/* A process measures it while MPI starts. */
static void measure_rate(void)
{
    struct spool_clock_pair from = clock_true_pair();
    wait_until(from.monotonic_ns + 50000000);
    struct spool_clock_pair to = clock_true_pair();
    spool_header()->nominal_ticks_per_ns =
        (double)(to.ticks - from.ticks) / (double)(to.monotonic_ns - from.monotonic_ns);
}

static void test_meeting(void)
{
    device_meet(&devices);
    CHECK(!devices.take);
    device_start();
    CHECK(devices.take && devices.shares && !begun); /* the plugin comes later, and sees it */
    devices.begin = begin;
    device_start();
    CHECK_EQUAL(begun, 1);
    CHECK_TEXT(found().state.source, "test");
    CHECK_EQUAL(found().state.resolution_ns, 10000);
    CHECK_TEXT(found().state.problem, "");
    device_flush();
    CHECK_EQUAL(flushed, 1);
    CHECK_TEXT(found().state.problem, "at the end of MPI");
    device_flush_at_end();
    CHECK_TEXT(found().state.problem, "at an abort");
}

static void test_rows(void)
{
    int64_t at = now_ns();
    wait_until(at + 200000);
    take(at, at + 10000, 0, DEVICE_KERNEL);
    CHECK_EQUAL(found().rows, 1);
    take(at + 15000, at + 20000, 0, DEVICE_KERNEL); /* a short pause */
    struct found all = found();
    CHECK_EQUAL(all.rows, 1);
    CHECK(ns(all.ticks) - 19900 <= 200 && ns(all.busy_ticks) - 14900 <= 200);
    take(at + 18000, at + 19000, 0, DEVICE_KERNEL); /* within it */
    CHECK_EQUAL(found().busy_ticks, all.busy_ticks);
    take(at + 20000, at + 21000, 0, DEVICE_TO_HOST);
    take(at + 20000, at + 21000, 1, DEVICE_KERNEL);
    take(at + 40000, at + 41000, 0, DEVICE_KERNEL);  /* a long pause */
    CHECK_EQUAL(found().rows, 4);
    take(at - 5000, at + 1000, 0, DEVICE_KERNEL);    /* comes late: a long kernel beside short ones */
    CHECK_EQUAL(found().rows, 5);
    take(1, 2, 0, DEVICE_KERNEL);                    /* before the recording */
    CHECK_EQUAL(found().rows, 5);
    take(at + 50000, at + 50000, 0, DEVICE_KERNEL);
    take(at, at + 1, 0, DEVICE_WORKS);
    take(at, at + 1, 1000, DEVICE_KERNEL);
    devices.take(NULL, 0, 4);
    all = found();
    CHECK(all.rows == 5 && all.state.lost == 7);
    CHECK(all.last.device == 0 && all.last.work_plus_1 == DEVICE_KERNEL + 1);
}

/* So many rows that pauses have to be longer, and all of the work is in them still. */
static void test_bound(void)
{
    enum { PIECES = 200000, PIECE = 1000, PAUSE = 15000 };
    uint64_t before = found().busy_ticks;
    int64_t at = now_ns();
    wait_until(at + 20000000); /* what is not yet over becomes as if it were now */
    int64_t first = now_ns() - (int64_t)PIECES * (PIECE + PAUSE);
    spool_header()->first.ticks = 0;
    for (int64_t i = 0; i < PIECES; i++)
        take(first + i * (PIECE + PAUSE), first + i * (PIECE + PAUSE) + PIECE, 2, DEVICE_KERNEL);
    struct found all = found();
    CHECK_EQUAL(all.state.resolution_ns, 20000);
    CHECK(all.rows < 33000);
    uint64_t busy = ns(all.busy_ticks - before);
    CHECK(busy > (uint64_t)PIECES * (PIECE - 2) && busy < (uint64_t)PIECES * (PIECE + 2));
}

static void test_end(void)
{
    size_t rows = found().rows;
    void (*late)(const struct lapscope_device_busy *, size_t, uint64_t) = devices.take;
    device_stop();
    CHECK(!devices.take);
    late(&(struct lapscope_device_busy){now_ns() - 1000, now_ns(), 3, DEVICE_KERNEL}, 1, 0); /* it was on its way */
    CHECK_EQUAL(found().rows, rows);
}

int main(void)
{
    setenv("LAPSCOPE_CUPTI", "share", 1);
    bring_up();
    spool_header()->world = 1; /* else it is none that is read */
    measure_rate();
    test_meeting();
    test_rows();
    test_bound();
    test_end();
    tear_down();
    return check_summary();
}
