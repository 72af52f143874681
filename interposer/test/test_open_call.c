/* What a process was inside of when it was killed: the requests that it waited for, and when it was seen to be gone. */
#define _GNU_SOURCE
#include "check.h"
#include "spool_builder.h"
#include "support.h"

#include "../recorder/base/call.h"
#include "../recorder/base/clock.h"
#include "../recorder/base/process.h"
#include "../recorder/store/store.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { OP_IRECV = 1, OP_WAITALL, OP_WAIT, STRIDE = 8, ARRAY = 0x1000, WORD = 0x9000 };

static const char *database;

static void convert(struct spool_builder *b)
{
    char error[1024] = "";
    struct store_result result;
    const char *spool = support_path("rank-3.spool");
    database = support_path("rank-3.db");
    build_write(b, spool, b->bytes);
    CHECK_EQUAL(store_convert(spool, database, NULL, NULL, &result, error, sizeof error), 0);
    CHECK_TEXT(error, "");
    CHECK_TEXT(support_broken_rules(database), "");
    build_free(b);
}

static struct spool_thread_state inside(unsigned thread, uint32_t operation, uint64_t variables, uint32_t count, uint8_t stride)
{
    return (struct spool_thread_state){.thread = (uint16_t)thread, .current_operation = operation, .current_begin = 6000,
                                       .calls = 9, .waits_variables = variables, .waits_count = count, .waits_stride = stride};
}

static void pend(struct spool_builder *b, chunk_at chunk, unsigned at, unsigned thread, uint64_t variable)
{
    *build_live(b, chunk, at) = (struct spool_live){
        .operation = OP_IRECV, .thread = (uint16_t)thread, .post_begin = 2000 + at, .post_ticks = 3, .variable = variable};
}

/* Two threads: the first inside MPI_Waitall, the second inside `operation`. Returns their LIVE chunks. */
static void build_threads(struct spool_builder *b, struct spool_thread_state first, struct spool_thread_state second,
                          chunk_at live[2])
{
    build_spool(b);
    for (unsigned thread = 0; thread < 2; thread++) {
        chunk_at stream = build_chunk(b, SPOOL_CHUNK_STREAM, thread, SPOOL_CHUNK_ALIGN, 1000);
        build_thread(b, stream, thread, 100 + thread);
        if (thread == 0) {
            build_operation(b, stream, (struct spool_operation){.id = OP_IRECV, .call = CALL_MPI_Irecv, .kind = SPOOL_RECV});
            build_operation(b, stream, (struct spool_operation){.id = OP_WAITALL, .call = CALL_MPI_Waitall});
            build_operation(b, stream, (struct spool_operation){.id = OP_WAIT, .call = CALL_MPI_Wait});
        }
    }
    for (unsigned thread = 0; thread < 2; thread++) {
        live[thread] = build_chunk(b, SPOOL_CHUNK_LIVE, thread, SPOOL_CHUNK_ALIGN, 0);
        *build_state(b, live[thread]) = thread ? second : first;
    }
}

static const char waits[] = "SELECT call_row_id, post_begin_ns, w.certain FROM open_wait w JOIN request r ON r.id = request_id "
                            "ORDER BY call_row_id, post_begin_ns";

/* Handles in the array count, whichever thread posted them; what lies beside it or between two handles does not. */
static void test_which_requests(void)
{
    struct spool_builder b;
    chunk_at live[2];
    build_threads(&b, inside(0, OP_WAITALL, ARRAY, 4, STRIDE), inside(1, OP_WAIT, WORD, 1, 4), live);
    pend(&b, live[0], 0, 0, ARRAY);
    pend(&b, live[0], 1, 0, ARRAY + 3 * STRIDE);
    pend(&b, live[0], 2, 0, ARRAY + 4 * STRIDE);
    pend(&b, live[0], 3, 0, ARRAY - STRIDE);
    pend(&b, live[0], 4, 0, ARRAY + 4);
    pend(&b, live[1], 5, 1, ARRAY + STRIDE);
    pend(&b, live[0], 6, 0, WORD);
    convert(&b);
    CHECK_TEXT(support_rows(database, waits), "1|1000|1\n1|1001|1\n1|1005|1\n2|1006|1\n");
}

/* Nothing says which of two requests is meant whose handles were made in the same variable. */
static void test_one_place(void)
{
    struct spool_builder b;
    chunk_at live[2];
    build_threads(&b, inside(0, OP_WAITALL, ARRAY, 2, STRIDE), inside(1, 0, ARRAY, 2, STRIDE), live);
    for (unsigned at = 0; at < 3; at++)
        pend(&b, live[0], at, 0, at == 1 ? ARRAY : ARRAY + STRIDE);
    convert(&b);
    CHECK_TEXT(support_rows(database, waits), "1|1000|0\n1|1001|1\n1|1002|0\n");
}

/* No array, a damaged one, and one that reaches round the end of memory. */
static void test_no_array(void)
{
    static const struct {
        uint64_t variables;
        uint32_t count;
        uint8_t stride;
        const char *rows;
    } arrays[] = {{ARRAY, 0, STRIDE, ""}, {ARRAY, 7, 0, ""}, {UINT64_MAX - 7, 3, STRIDE, "1|1001|1\n"}};
    for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++) {
        struct spool_builder b;
        chunk_at live[2];
        build_threads(&b, inside(0, OP_WAITALL, arrays[i].variables, arrays[i].count, arrays[i].stride),
                      (struct spool_thread_state){.thread = 1}, live);
        pend(&b, live[0], 0, 0, ARRAY);
        pend(&b, live[0], 1, 0, UINT64_MAX - 7);
        convert(&b);
        CHECK_TEXT(support_rows(database, waits), arrays[i].rows);
    }
}

/* --- gone_ns ------------------------------------------------------------------------------------------------------ */

/* Of a process of this boot that has ended, whose recording began five seconds ago. */
static void build_dead(struct spool_builder *b)
{
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    waitpid(child, NULL, 0);
    build_spool(b);
    struct spool_file_header *header = build_header(b);
    int64_t began = (int64_t)clock_nanoseconds(CLOCK_MONOTONIC) - 5000000000;
    process_boot(header->boot_id, sizeof header->boot_id);
    header->pid = child;
    header->pid_namespace = process_namespace();
    header->first = (struct spool_clock_pair){(uint64_t)began, began};
    header->init_end = (uint64_t)began;
}

static int64_t gone(void)
{
    return support_number(database, "SELECT coalesce(gone_ns, -1) FROM rank");
}

/* Two seconds behind the begin it said that it ends; its clock was set then. */
static void test_ended(void)
{
    struct spool_builder b;
    build_dead(&b);
    struct spool_file_header *header = build_header(&b);
    const uint64_t later = 2000000000;
    header->nominal_ticks_per_ns = 1;
    header->end = SPOOL_EXITED;
    header->latest[1] = (struct spool_clock_pair){header->first.ticks + later, header->first.monotonic_ns + (int64_t)later};
    header->latest_index = 1;
    convert(&b);
    CHECK_EQUAL(gone(), later);
    CHECK_TEXT(support_rows(database, "SELECT ended FROM rank"), "exit\n");
}

static void test_gone(void)
{
    struct spool_builder b;
    build_dead(&b);
    convert(&b);
    CHECK(gone() >= 5000000000 && gone() < 600000000000);
    CHECK_TEXT(support_rows(database, "SELECT ended FROM rank"), "killed\n");
}

/* It runs; it may run where it cannot be seen; it has said how it ended; the clock of its host was set back. */
static void test_not_gone(void)
{
    for (int i = 0; i < 5; i++) {
        struct spool_builder b;
        build_dead(&b);
        struct spool_file_header *header = build_header(&b);
        if (i == 0) {
            header->pid = getpid();
            header->pid_start = process_start("self");
        } else if (i == 1) {
            header->pid_namespace++;
        } else if (i == 2) {
            strcpy(header->boot_id, "0f0e0d0c-1111-2222-3333-444455556666"); /* of another host */
        } else if (i == 3) {
            header->end = SPOOL_EXITED;
        } else {
            header->first.monotonic_ns += 3600000000000;
        }
        convert(&b);
        CHECK_EQUAL(gone(), -1);
    }
}

/* Behind a reboot of its host only the time of day tells. */
static void test_gone_before_boot(void)
{
    struct spool_builder b;
    build_dead(&b);
    struct spool_file_header *header = build_header(&b);
    strcpy(header->boot_id, "0f0e0d0c-1111-2222-3333-444455556666");
    gethostname(header->host, sizeof header->host - 1);
    const int64_t year = INT64_C(365) * 24 * 3600 * 1000000000;
    header->epoch_unix_ns = (int64_t)clock_nanoseconds(CLOCK_REALTIME) - year; /* no machine that builds this is up for so long */
    convert(&b);
    CHECK(gone() >= year && gone() < year + 600000000000);
}

int main(void)
{
    support_begin();
    test_which_requests();
    test_one_place();
    test_no_array();
    test_ended();
    test_gone();
    test_not_gone();
    test_gone_before_boot();
    support_end();
    return check_summary();
}
