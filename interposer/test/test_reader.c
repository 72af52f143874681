/* Reading spools record by record: recorder/spool/reader.h. */
#include "check.h"
#include "sample.h"
#include "support.h"

#include "../recorder/spool/definitions.h"
#include "../recorder/spool/reader.h"

static struct spool_file file;
static char error[512];

static int open_spool(const struct spool_builder *b, size_t bytes)
{
    const char *path = support_path("rank-3.spool");
    build_write(b, path, bytes);
    return spool_file_open(&file, path, error, sizeof error);
}

/* Types and first fields of a chunk's records, as text. */
static const char *records_of(const struct spool_part *part, int definitions_only)
{
    static char text[4096];
    struct spool_cursor cursor = spool_records(part);
    struct spool_view view;
    text[0] = '\0';
    while ((definitions_only ? spool_next_definition(&cursor, &view) : spool_next_record(&file, &cursor, &view)) > 0) {
        size_t used = strlen(text);
        if (view.type >= SPOOL_CALL)
            snprintf(text + used, sizeof text - used, "%d(%d,%d) ", view.type, (int)view.fields[0], (int)view.fields[1]);
        else
            snprintf(text + used, sizeof text - used, "%d ", view.type);
    }
    return text;
}

static void test_records(void)
{
    struct spool_builder b;
    struct sample_ends ends;
    build_sample(&b, &ends);
    CHECK_EQUAL(open_spool(&b, b.bytes), 0);
    CHECK_EQUAL(file.part_count, 7);
    CHECK_EQUAL(file.damaged, 0);
    /* by thread, then in the order of writing: stream, live, tally, devices and stream of thread 0; stream and live of thread 1
     */
    static const int kinds[] = {1, 2, 3, 5, 1, 1, 2}, threads[] = {0, 0, 0, 0, 0, 1, 1};
    for (size_t i = 0; i < 7; i++)
        CHECK(file.parts[i].kind == kinds[i] && file.parts[i].thread == threads[i]);
    CHECK_TEXT(records_of(&file.parts[0], 0), "7 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 4 4 9 3 5 6 5 21(0,9) 21(4,28) 16(3,500) 17(3,51) "
                                              "21(0,-2) 21(4,0) 18(1,400) 18(2,350) 22(1450,1000) 20(30,10) 16(4,1000) ");
    CHECK_TEXT(records_of(&file.parts[0], 1), "7 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 4 4 9 3 5 6 5 ");
    CHECK_TEXT(records_of(&file.parts[4], 0), "4 5 5 26(40,2) 16(7,4000) 16(8,100) ");
    CHECK_TEXT(records_of(&file.parts[5], 0), "7 2 2 5 6 6 5 5 5 16(3,700) 26(50,4) 26(60,1) 19(0,2) 18(3,650) 16(5,10) ");
    CHECK_TEXT(records_of(&file.parts[5], 1), "7 2 2 5 6 6 5 5 5 ");
    spool_file_close(&file);
    build_free(&b);
}

static void test_entries(void)
{
    struct spool_builder b;
    struct sample_ends ends;
    const struct spool_thread_state *state;
    size_t count;
    build_sample(&b, &ends);
    CHECK_EQUAL(open_spool(&b, b.bytes), 0);
    const struct spool_live *live = spool_live_entries(&file.parts[1], &count, &state);
    CHECK_EQUAL(count, (SPOOL_CHUNK_ALIGN - 64 - 128) / 128);
    CHECK(state && state->calls == 12);
    CHECK(live[0].operation == 1 && live[0].post_begin == 5000 && live[2].operation == 0 && live[3].operation == 2);
    const struct spool_tally *tally = spool_tally_entries(&file.parts[2], &count);
    CHECK_EQUAL(count, (SPOOL_CHUNK_ALIGN - 64) / 64);
    CHECK(tally[1].window_ticks == 40);
    spool_file_close(&file);

    /* cut behind the state and one entry and a half */
    chunk_at chunk = SPOOL_HEADER_BYTES + SPOOL_CHUNK_ALIGN;
    CHECK_EQUAL(open_spool(&b, chunk + 64 + 128 + 192), 0);
    live = spool_live_entries(&file.parts[1], &count, &state);
    CHECK(state && count == 1 && live[0].operation == 1);
    CHECK_EQUAL(file.damaged, 1);
    CHECK_EQUAL(file.damaged_at, chunk + 64 + 128 + 192);
    spool_file_close(&file);
    CHECK_EQUAL(open_spool(&b, chunk + 64 + 100), 0);
    spool_live_entries(&file.parts[1], &count, &state);
    CHECK(!state && count == 0);
    spool_file_close(&file);
    build_free(&b);
}

/* A record that says it is longer than its chunk: what was before it is read, then the chunk is over. */
static void test_bad_record(void)
{
    struct spool_builder b;
    build_spool(&b);
    chunk_at chunk = build_chunk(&b, SPOOL_CHUNK_STREAM, 0, SPOOL_CHUNK_ALIGN, 0);
    size_t good = build_thread(&b, chunk, 0, 1);
    struct spool_meta meta = {5, 4000000000u};
    build_definition(&b, chunk, SPOOL_META, &meta, sizeof meta, "key", 3, NULL, 0);
    CHECK_EQUAL(open_spool(&b, b.bytes), 0);
    CHECK_TEXT(records_of(&file.parts[0], 1), "7 ");
    CHECK_EQUAL(file.damaged, 0);
    CHECK_TEXT(records_of(&file.parts[0], 0), "7 ");
    CHECK_EQUAL(file.damaged, 1);
    CHECK_EQUAL(file.damaged_at, good);
    spool_file_close(&file);
    b.data[good] = 12; /* no such type */
    CHECK_EQUAL(open_spool(&b, b.bytes), 0);
    CHECK_TEXT(records_of(&file.parts[0], 0), "7 ");
    CHECK_EQUAL(file.damaged_at, good);
    spool_file_close(&file);
    build_free(&b);
}

static void test_chunk_lengths(void)
{
    static const uint64_t lengths[] = {0, 1, SPOOL_CHUNK_ALIGN - 1, SPOOL_CHUNK_ALIGN + 1, UINT64_MAX};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        struct spool_builder b;
        build_spool(&b);
        chunk_at bad = build_chunk(&b, SPOOL_CHUNK_STREAM, 0, SPOOL_CHUNK_ALIGN, 0);
        build_chunk(&b, SPOOL_CHUNK_STREAM, 1, SPOOL_CHUNK_ALIGN, 0);
        build_chunk_head(&b, bad)->bytes = lengths[i];
        CHECK_EQUAL(open_spool(&b, b.bytes), 0);
        CHECK(file.part_count == 1 && file.parts[0].thread == 1 && file.parts[0].gap == 1);
        CHECK_EQUAL(file.damaged_at, bad);
        spool_file_close(&file);
        build_free(&b);
    }
}

/* Reserved on the disk, and killed before the chunk was taken into use: nothing is wrong. */
static void test_reserved_chunk(void)
{
    struct spool_builder b;
    build_spool(&b);
    build_chunk(&b, SPOOL_CHUNK_STREAM, 0, SPOOL_CHUNK_ALIGN, 0);
    chunk_at reserved = build_chunk(&b, SPOOL_CHUNK_STREAM, 0, 2 * SPOOL_CHUNK_ALIGN, 0);
    memset(b.data + reserved, 0, sizeof(struct spool_chunk));
    build_header(&b)->chunks = 1;
    CHECK_EQUAL(open_spool(&b, b.bytes), 0);
    CHECK(file.part_count == 1 && file.damaged == 0);
    spool_file_close(&file);
    build_free(&b);
}

/* Cut exactly between two chunks: only the header's count can tell. */
static void test_cut_between_chunks(void)
{
    struct spool_builder b;
    struct sample_ends ends;
    build_sample(&b, &ends);
    CHECK_EQUAL(open_spool(&b, SPOOL_HEADER_BYTES + 2 * SPOOL_CHUNK_ALIGN), 0);
    CHECK(file.part_count == 2 && file.damaged == 1);
    spool_file_close(&file);
    CHECK_EQUAL(open_spool(&b, SPOOL_HEADER_BYTES), 0);
    CHECK(file.part_count == 0 && file.damaged == 1);
    spool_file_close(&file);
    build_free(&b);
}

static void test_inspect(void)
{
    struct spool_builder b;
    struct spool_info info;
    build_spool(&b);
    memset(build_header(&b)->host, 'h', sizeof build_header(&b)->host); /* unterminated */
    build_header(&b)->end = SPOOL_ABORTED;
    const char *path = support_path("rank-3.spool");
    build_write(&b, path, b.bytes);
    CHECK_EQUAL(spool_inspect(path, &info, error, sizeof error), 0);
    CHECK(info.rank == 3 && info.world_size == 8 && info.life == 1 && info.pid == 4711 && info.pid_start == 99);
    CHECK_EQUAL(info.end, SPOOL_ABORTED);
    CHECK_EQUAL(strlen(info.host), 255);
    CHECK_TEXT(info.boot_id, "0f0e0d0c-1111-2222-3333-444455556666");
    CHECK_EQUAL(spool_inspect(support_path("none"), &info, error, sizeof error), -1);
    CHECK(strstr(error, "none cannot be opened"));
    build_free(&b);
}

/* World ranks of peers: MPI_COMM_WORLD lists no members, an unknown communicator knows none. */
static void test_peers(void)
{
    static const int32_t members[] = {4, -1, 2};
    struct comm_definition world = {.head = {.id = 1, .size = 4}},
                           listed = {.head = {.id = 2, .size = 3, .members = 3}, .members = (const unsigned char *)members},
                           inter = {.head = {.id = 3, .inter = 1, .size = 1, .remote_size = 2, .members = 3},
                                    .members = (const unsigned char *)members},
                           unknown = {.head = {.id = 4, .size = 3, .members = UINT32_MAX}};
    CHECK_EQUAL(spool_peer_world(&world, 3), 3);
    CHECK_EQUAL(spool_peer_world(&world, 4), WORLD_RANK_UNKNOWN);
    CHECK_EQUAL(spool_peer_world(&world, SPOOL_ANY_SOURCE), WORLD_RANK_UNKNOWN);
    CHECK_EQUAL(spool_peer_world(&world, SPOOL_PROC_NULL), WORLD_RANK_UNKNOWN);
    CHECK_EQUAL(spool_peer_world(&listed, 0), 4);
    CHECK_EQUAL(spool_peer_world(&listed, 1), WORLD_RANK_UNKNOWN);
    CHECK_EQUAL(spool_peer_world(&inter, 1), 2);
    CHECK_EQUAL(spool_peer_world(&inter, 2), WORLD_RANK_UNKNOWN);
    CHECK_EQUAL(spool_peer_world(&unknown, 0), WORLD_RANK_UNKNOWN);
    CHECK_EQUAL(spool_peer_world(NULL, 0), WORLD_RANK_UNKNOWN);
}

int main(void)
{
    support_begin();
    test_records();
    test_entries();
    test_bad_record();
    test_chunk_lengths();
    test_reserved_chunk();
    test_cut_between_chunks();
    test_inspect();
    test_peers();
    support_end();
    return check_summary();
}
