/* Conversion of whole spools: rows read back and compared with what was worked out by hand. */
#include "check.h"
#include "sample.h"
#include "support.h"

#include "../recorder/base/call.h"
#include "../recorder/store/store.h"

#include <stdlib.h>
#include <sys/stat.h>

static struct store_result result;
static char error[1024];
static const char *database;

static int convert(struct spool_builder *b)
{
    const char *spool = support_path("rank-3.spool");
    database = support_path("rank-3.db");
    error[0] = '\0';
    build_write(b, spool, b->bytes);
    int code = store_convert(spool, database, NULL, NULL, &result, error, sizeof error);
    CHECK_TEXT(error, "");
    return code;
}

static const char *rows(const char *query)
{
    return support_rows(database, query);
}

static void check_sample_definitions(void)
{
    CHECK_TEXT(rows("SELECT rank, life, world_size, host, pid, command, executable, mpi_abi, mpi_library, mpi_standard,"
                    " thread_level, lapscope_version, job FROM rank"),
               "3|1|8|node17|4711|./app -n 4|/home/u/app|openmpi|Open MPI 4.1.4 \xe2\x80\x94 ?|3.1|3|0.1.0|j1\n");
    /* the end: thread 0 entered MPI_Recv at 6000 ticks, 5000 ns after the epoch; a test was seen at 4300 */
    CHECK_TEXT(rows("SELECT epoch_ns, epoch_unix_ns, clock, init_end_ns, end_ns, ended, lost_records, unknown_requests,"
                    " summarized FROM rank"),
               "1000|1700000000000000000|monotonic|10|5000|killed|1|2|0\n");
    CHECK_TEXT(rows("SELECT * FROM option"), "3|LAPSCOPE_MAX_MB|512|default\n");
    CHECK_TEXT(rows("SELECT * FROM starvation"), "3|450|1450|600\n");
    CHECK_TEXT(rows("SELECT * FROM device_recorder"), "3|libcupti.so.12|NULL|20000|3\n");
    CHECK_TEXT(rows("SELECT * FROM device_busy"), "3|1|kernel|500|600|90\n3|0|to_host|600|607|7\n");
    CHECK_TEXT(rows("SELECT * FROM mark ORDER BY begin_ns"), "3|1|40|1|solve\n3|2|50|2|NULL\n3|2|60|-1|solve\n");
    CHECK_TEXT(rows("SELECT * FROM environment"), "3|OMPI_MCA_btl|tcp,self\n");
    CHECK_TEXT(rows("SELECT * FROM cvar"), "3|btl_tcp_eager_limit|65536\n");
    CHECK_TEXT(rows("SELECT * FROM counter"), "3|0|sde:::app::WORK|work done|items|NULL\n"
                                              "3|1|PAPI_TOT_INS|||not available on this processor\n"
                                              "3|2|c2|||NULL\n3|3|c3|||NULL\n3|4|c4|||NULL\n3|5|c5|||NULL\n");
    CHECK_TEXT(rows("SELECT * FROM thread"), "1|3|0|100|555|12\n2|3|1|101|100|5\n");
    CHECK_TEXT(rows("SELECT * FROM module"), "1|3|/lib/libapp.so|dead000f|139637976727552|12288\n"
                                              "2|3|/home/halo.py|python:Grid.exchange|-9223319260296642560|17592186044416\n");
    CHECK_TEXT(rows("SELECT * FROM python_lines"), "1|1|Grid.exchange|/home/halo.py|41|5\n");
    CHECK_TEXT(rows("SELECT * FROM call_path"), "1|3|0\n");
    CHECK_TEXT(rows("SELECT * FROM frame"), "1|0|1|4660\n1|1|2|167941\n1|2|NULL|1280\n");
    CHECK_TEXT(rows("SELECT * FROM communicator"), "1|3|77|0|intra|8|0|3|MPI_COMM_WORLD\n"
                                                   "2|3|88|1|intra|3|0|0|MPI_Comm_split\n"
                                                   "3|3|99|0|inter|2|2|0|MPI_Intercomm_create\n");
    CHECK_TEXT(rows("SELECT * FROM communicator_member"), "2|0|0|3\n2|0|1|5\n2|0|2|1\n"
                                                          "3|0|0|3\n3|0|1|4\n3|1|0|6\n3|1|1|NULL\n");
    CHECK_EQUAL(support_number(database, "SELECT count(*) FROM call_name"), CALL_COUNT);
    CHECK_TEXT(rows("SELECT DISTINCT name, family, role FROM call_name c JOIN operation o ON c.id = call_id "
                    "WHERE kind = 'send' AND ended IS NOT NULL"),
               "MPI_Isend|POINT_TO_POINT|POST\n");
    CHECK_TEXT(rows("PRAGMA user_version"), "12\n");
}

static void check_sample_rows(void)
{
    /* operations: name, path, comm, kind, bytes, peer, tag, as posted, ended */
    CHECK_TEXT(rows("SELECT o.id, name, call_path_id, communicator_id, kind, bytes, peer, tag, posted_peer, posted_tag,"
                    " posted_bytes,"
                    " ended FROM operation o JOIN call_name n ON n.id = call_id ORDER BY 1"),
               "1|MPI_Waitall|NULL|NULL|other|0|NULL|NULL|NULL|NULL|0|NULL\n"
               "2|MPI_Isend|1|2|send|4096|5|7|1|7|4096|waited\n"
               "3|MPI_Irecv|1|1|recv|100|6|9|-1|9|200|waited\n"
               "4|MPI_Recv|1|1|recv|8|2|5|-1|-1|16|NULL\n"
               "5|MPI_Bcast|1|2|collective|64|5|NULL|1|NULL|64|NULL\n"
               "6|MPI_Allreduce|NULL|3|collective|8|NULL|NULL|NULL|NULL|8|NULL\n"
               "7|MPI_Isend|1|2|send|4096|5|7|1|7|4096|tested\n"
               "8|MPI_Sendrecv|1|3|send|32|6|1|0|1|32|NULL\n"
               "9|MPI_Sendrecv|1|2|recv|0|NULL|NULL|-2|1|32|NULL\n"
               "10|MPI_Isend|1|2|send|4096|5|7|1|7|4096|pending\n"
               "11|MPI_Irecv|1|1|recv|200|NULL|9|-1|9|200|pending\n");
    CHECK_TEXT(rows("SELECT * FROM call"), "1|1|1|500|300|NULL|NULL|2|NULL\n"
                                           "2|4|1|1500|50|30|10|0|NULL\n"
                                           "3|5|1|4000|70|NULL|NULL|0|NULL\n"
                                           "4|6|1|4100|71|NULL|NULL|0|NULL\n"
                                           "5|1|2|700|100|NULL|NULL|1|NULL\n"
                                           "6|8|2|710|5|NULL|NULL|0|9\n"
                                           "7|4|1|5000|NULL|NULL|NULL|0|NULL\n");
    CHECK_TEXT(rows("SELECT * FROM request"), "1|2|1|1|100|20|30|64|3|50|200|180|300|NULL\n"
                                              "2|3|1|1|150|10|0|0|0|NULL|NULL|NULL|NULL|NULL\n"
                                              "3|7|5|1|50|5|NULL|0|0|NULL|NULL|NULL|NULL|1\n"
                                              "4|10|NULL|1|4000|12|NULL|128|2|100|300|200|NULL|0\n"
                                              "5|11|NULL|1|4050|0|NULL|0|0|NULL|NULL|NULL|350|NULL\n");
    CHECK_TEXT(rows("SELECT * FROM request_memory"), "3|device\n4|managed\n");
    CHECK_TEXT(rows("SELECT * FROM call_counter"), "1|0|-5\n1|2|11\n1|3|12\n1|4|13\n1|5|14\n");
    CHECK_TEXT(rows("SELECT * FROM request_counter"), "1|0|36028797018963967\n1|2|1\n1|3|2\n1|4|3\n1|5|0\n");
    CHECK_TEXT(rows("SELECT rank, thread_id, name, call_path_id, reason, size_class, count, bytes, inside_ns, exposed_ns,"
                    " mpi_ns,"
                    " overlap_window_ns FROM tally JOIN call_name ON id = call_id"),
               "3|1|MPI_Test|1|unsuccessful_test|0|9|0|90|0|0|0\n3|1|MPI_Isend|NULL|summary|13|2|8192|10|20|30|40\n");
    CHECK_TEXT(rows("SELECT call, overlap_window_ns, compute_ns, completion_ns, completed_together"
                    " FROM requests WHERE id <= 3"),
               "MPI_Isend|380|350|300|2\nMPI_Irecv|340|340|300|2\nMPI_Isend|645|NULL|100|1\n");
    CHECK_TEXT(rows("SELECT what, call, peer, begin_ns FROM pending"),
               "request|MPI_Isend|5|4000\nrequest|MPI_Irecv|NULL|4050\ncall|MPI_Recv|2|5000\n");
}

static void test_sample(void)
{
    struct spool_builder b;
    struct sample_ends ends;
    struct stat facts;
    build_sample(&b, &ends);
    CHECK_EQUAL(convert(&b), 0);
    check_sample_definitions();
    check_sample_rows();
    CHECK_TEXT(support_broken_rules(database), "");
    CHECK_EQUAL(result.rank, 3);
    CHECK_EQUAL(result.life, 1);
    CHECK_EQUAL(result.end, SPOOL_OPEN);
    CHECK_EQUAL(result.calls, 7);
    CHECK_EQUAL(result.requests, 5);
    CHECK_EQUAL(result.pending, 3);
    CHECK_EQUAL(result.lost, 1);
    CHECK_EQUAL(result.damaged, 0);
    CHECK(stat(database, &facts) == 0 && (facts.st_mode & 0777) == 0600);
    CHECK_EQUAL(support_files(), 2); /* spool and database, nothing else */
    build_free(&b);
}

/* The same run, but finalized: the call under way is no longer under way, and MPI_Finalize is the end. */
static void test_finalized(void)
{
    struct spool_builder b;
    struct sample_ends ends;
    build_sample(&b, &ends);
    build_header(&b)->end = SPOOL_FINALIZED;
    build_header(&b)->finalize_begin = 9000;
    CHECK_EQUAL(convert(&b), 0);
    CHECK_TEXT(rows("SELECT ended, end_ns FROM rank"), "finalize|8000\n");
    CHECK_TEXT(rows("SELECT count(*), sum(duration_ns IS NULL) FROM call"), "6|0\n");
    CHECK_EQUAL(result.pending, 2);
    build_free(&b);
}

static void test_ends(void)
{
    static const struct {
        unsigned end;
        const char *ended;
    } ends[] = {{SPOOL_ABORTED, "abort|0\n"}, {SPOOL_EXITED, "exit|0\n"}, {99, "killed|0\n"}};
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        struct spool_builder b;
        build_spool(&b);
        build_header(&b)->init_end = 0;
        build_header(&b)->end = ends[i].end;
        CHECK_EQUAL(convert(&b), 0);
        CHECK_TEXT(rows("SELECT ended, end_ns FROM rank"), ends[i].ended);
        build_free(&b);
    }
}

/* Older recorders say nothing of memory. */
static void test_processor(void)
{
    static const char *const texts[] = {"900\t50\t3\t1\t4\t8\t65536", "900\t50\t3\t1\t4\t8"},
                      *const expected[] = {"900|50|3|1|4|8|65536\n", "900|50|3|1|4|8|NULL\n"};
    for (int i = 0; i < 2; i++) {
        struct spool_builder b;
        build_spool(&b);
        build_meta(&b, build_chunk(&b, SPOOL_CHUNK_STREAM, 0, SPOOL_CHUNK_ALIGN, 1000), "processor", texts[i]);
        CHECK_EQUAL(convert(&b), 0);
        CHECK_TEXT(rows("SELECT run_ns, wait_ns, switches, preemptions, allowed, online, peak_memory_bytes FROM processor"),
                   expected[i]);
        build_free(&b);
    }
}

/* Killed behind MPI_Finalize is not killed, within it is. */
static void test_killed_at_the_end(void)
{
    struct spool_builder b;
    struct sample_ends ends;
    build_spool(&b);
    build_header(&b)->finalize_begin = 9000;
    CHECK_EQUAL(convert(&b), 0);
    CHECK_TEXT(rows("SELECT ended, end_ns FROM rank"), "finalize|8000\n");
    CHECK_EQUAL(result.end, SPOOL_FINALIZED);
    build_free(&b);
    build_sample(&b, &ends); /* a thread is inside of a call */
    build_header(&b)->finalize_begin = 9000;
    CHECK_EQUAL(convert(&b), 0);
    CHECK_TEXT(rows("SELECT ended, end_ns FROM rank"), "killed|8000\n");
    CHECK_EQUAL(result.end, SPOOL_OPEN);
    build_free(&b);
}

/* --- the clock ---------------------------------------------------------------------------------------------------- */

static void build_clock_spool(struct spool_builder *b, uint64_t post, uint64_t begin, uint64_t duration)
{
    build_spool(b);
    build_header(b)->clock = SPOOL_CLOCK_TSC;
    build_header(b)->first = (struct spool_clock_pair){1000000, 5000};
    build_header(b)->init_end = 1000000;
    chunk_at chunk = build_chunk(b, SPOOL_CHUNK_STREAM, 0, SPOOL_CHUNK_ALIGN, 1000000);
    build_thread(b, chunk, 0, 1);
    build_operation(b, chunk, (struct spool_operation){.id = 1, .call = CALL_MPI_Isend, .kind = SPOOL_SEND});
    build_outcome(b, chunk, (struct spool_outcome){.id = 1, .operation = 1, .ended = SPOOL_WAITED});
    BUILD_HOT(b, chunk, SPOOL_CALL, 1, begin, duration, 0);
    BUILD_HOT(b, chunk, SPOOL_REQUEST, 1, begin - post, 3, 0, 0);
}

static void test_clocks(void)
{
    static const char times[] = "SELECT post_begin_ns, begin_ns, duration_ns FROM call JOIN request";
    struct spool_builder b;
    build_clock_spool(&b, 100, 4000, 90); /* no pair yet: 4 ticks a ns, as measured at the start */
    build_header(&b)->nominal_ticks_per_ns = 4;
    CHECK_EQUAL(convert(&b), 0);
    CHECK_TEXT(rows(times), "25|1000|22\n");
    CHECK_TEXT(rows("SELECT clock, epoch_ns FROM rank"), "tsc|5000\n");
    /* the latest pair counts: index 1 says that it is in latest[1], where 2 ticks are a ns */
    build_header(&b)->latest[0] = (struct spool_clock_pair){1, 2};
    build_header(&b)->latest[1] = (struct spool_clock_pair){1000000 + 20000000, 5000 + 10000000};
    build_header(&b)->latest_index = 1;
    CHECK_EQUAL(convert(&b), 0);
    CHECK_TEXT(rows(times), "50|2000|45\n");
    build_free(&b);
    /* CLOCK_MONOTONIC that a test had run faster by a quarter */
    build_clock_spool(&b, 100, 4000, 88);
    build_header(&b)->clock = SPOOL_CLOCK_MONOTONIC;
    build_header(&b)->latest[1] = (struct spool_clock_pair){1000000 + 20000000, 5000 + 25000000};
    build_header(&b)->latest_index = 1;
    CHECK_EQUAL(convert(&b), 0);
    CHECK_TEXT(rows(times), "125|5000|110\n");
    CHECK_TEXT(rows("SELECT clock, epoch_ns FROM rank"), "monotonic|5000\n");
    build_free(&b);
}

/* Thirty days of ticks at 2.4 GHz: not a nanosecond may be lost that the clock could tell. */
static void test_long_run(void)
{
    struct spool_builder b;
    const uint64_t day = (uint64_t)86400 * 1000000000, ticks_per_day = day / 5 * 12;
    build_clock_spool(&b, 30 * ticks_per_day - 2400, 30 * ticks_per_day, 24);
    build_header(&b)->latest[0] = (struct spool_clock_pair){1000000 + 31 * ticks_per_day, 5000 + (int64_t)(31 * day)};
    build_header(&b)->latest_index = 2;
    CHECK_EQUAL(convert(&b), 0);
    int64_t begin = support_number(database, "SELECT begin_ns FROM call");
    CHECK(llabs(begin - (int64_t)(30 * day)) <= 1);
    CHECK(llabs(support_number(database, "SELECT begin_ns - post_begin_ns FROM call JOIN request") - 1000) <= 1);
    build_free(&b);
}

/* --- operations that speak of others ------------------------------------------------------------------------------ */

static void test_related_operations(void)
{
    struct spool_builder b;
    build_spool(&b);
    chunk_at chunk = build_chunk(&b, SPOOL_CHUNK_STREAM, 0, SPOOL_CHUNK_ALIGN, 1000);
    build_thread(&b, chunk, 0, 1);
    build_operation(&b, chunk, (struct spool_operation){.id = 1, .call = CALL_MPI_Ssend_init, .kind = SPOOL_SEND, .bytes = 8});
    build_operation(&b, chunk, (struct spool_operation){.id = 2, .call = CALL_MPI_Start, .kind = SPOOL_SEND, .bytes = 8,
                                                        .init_operation = 1});
    build_operation(&b, chunk, (struct spool_operation){.id = 3, .call = CALL_MPI_Isendrecv, .kind = SPOOL_RECV, .bytes = 40});
    build_operation(&b, chunk, (struct spool_operation){.id = 4, .call = CALL_MPI_Isendrecv, .kind = SPOOL_SEND, .bytes = 9,
                                                        .receive_operation = 3});
    build_operation(&b, chunk, (struct spool_operation){.id = 5, .call = CALL_MPI_Isendrecv, .kind = SPOOL_RECV, .bytes = 40,
                                                        .actual_bytes = 30});
    build_operation(&b, chunk, (struct spool_operation){.id = 6, .call = CALL_MPI_Waitall});
    build_operation(&b, chunk, (struct spool_operation){.id = 7, .call = CALL_MPI_Start, .init_operation = 7}); /* damaged */
    build_outcome(&b, chunk, (struct spool_outcome){.id = 1, .operation = 2, .bytes = 8, .ended = SPOOL_WAITED});
    build_outcome(&b, chunk, (struct spool_outcome){.id = 2, .operation = 4, .bytes = 9, .ended = SPOOL_WAITED,
                                                    .receive_operation = 5});
    build_outcome(&b, chunk, (struct spool_outcome){.id = 3, .operation = 7, .ended = SPOOL_WAITED});
    BUILD_HOT(&b, chunk, SPOOL_CALL, 1, 1000, 5, 0);
    BUILD_HOT(&b, chunk, SPOOL_CALL, 6, 2000, 5, 0);
    for (uint64_t outcome = 1; outcome <= 3; outcome++)
        BUILD_HOT(&b, chunk, SPOOL_REQUEST, outcome, 500, 7, 0, 0);
    CHECK_EQUAL(convert(&b), 0);
    CHECK_TEXT(rows("SELECT c.name, o.bytes, made.name, init.bytes, r.kind, r.bytes, r.posted_bytes FROM request "
                    "JOIN operation o ON o.id = operation_id JOIN call_name c ON c.id = o.call_id "
                    "LEFT JOIN operation init ON init.id = o.init_operation_id "
                    "LEFT JOIN call_name made ON made.id = init.call_id "
                    "LEFT JOIN operation r ON r.id = o.receive_operation_id"),
               "MPI_Start|8|MPI_Ssend_init|0|NULL|NULL|NULL\n"
               "MPI_Isendrecv|9|NULL|NULL|recv|30|40\n"
               "MPI_Start|0|NULL|NULL|NULL|NULL|NULL\n");
    CHECK_TEXT(support_broken_rules(database), "");
    build_free(&b);
}

/* --- many rows ---------------------------------------------------------------------------------------------------- */

static void record_progress(void *context, uint64_t done, uint64_t total)
{
    uint64_t *last = context;
    CHECK(done >= *last && done <= total);
    *last = done;
}

/* More rows than fit into one batch, several chunks, and a few tested requests among them. */
static void test_many_rows(void)
{
    struct spool_builder b;
    uint64_t last_progress = 0;
    build_spool(&b);
    chunk_at chunk = build_chunk(&b, SPOOL_CHUNK_STREAM, 0, SPOOL_CHUNK_ALIGN, 1000);
    build_operation(&b, chunk, (struct spool_operation){.id = 1, .call = CALL_MPI_Wait});
    build_outcome(&b, chunk, (struct spool_outcome){.id = 1, .operation = 1, .ended = SPOOL_WAITED});
    uint64_t begin = 0;
    for (unsigned i = 0; i < 10000; i++) {
        int fresh = build_chunk_head(&b, chunk)->used > SPOOL_CHUNK_ALIGN - 200;
        if (fresh)
            chunk = build_chunk(&b, SPOOL_CHUNK_STREAM, 0, SPOOL_CHUNK_ALIGN, 1000);
        begin += 1000;
        BUILD_HOT(&b, chunk, SPOOL_CALL, 1, fresh ? begin : 1000, i, 0);
        if (i % 777 == 5)
            BUILD_HOT(&b, chunk, SPOOL_EXTRA, i, 1, 1, 0, 0);
        BUILD_HOT(&b, chunk, SPOOL_REQUEST, 1, 500, 7, 0, 0);
    }
    CHECK_EQUAL(convert(&b), 0);
    CHECK_EQUAL(store_convert(support_path("rank-3.spool"), database, record_progress, &last_progress, &result, error,
                              sizeof error),
                0);
    CHECK(last_progress > 0);
    CHECK_TEXT(rows("SELECT count(*), sum(begin_ns = id * 1000), sum(duration_ns = id - 1), sum(completed) FROM call"),
               "10000|10000|10000|10000\n");
    CHECK_TEXT(rows("SELECT count(*), sum(completion_id = id), sum(post_begin_ns = id * 1000 - 500) FROM request"),
               "10000|10000|10000\n");
    CHECK_TEXT(rows("SELECT count(*), sum(unsuccessful_tests = id - 1), sum(first_unsuccessful_test_ns = 0)"
                    " FROM request WHERE unsuccessful_tests"), "13|13|13\n");
    CHECK_TEXT(support_broken_rules(database), "");
    build_free(&b);
}

/* An existing database is replaced, and a partial one that a killed conversion left does no harm. */
static void test_again(void)
{
    struct spool_builder b;
    struct sample_ends ends;
    build_sample(&b, &ends);
    build_write(&b, support_path("rank-3.db"), 5000);
    build_write(&b, support_path("rank-3.db.part"), 5000);
    CHECK_EQUAL(convert(&b), 0);
    CHECK_TEXT(support_broken_rules(database), "");
    CHECK_EQUAL(support_files(), 2);
    build_free(&b);
}

/* --- several ranks in one database -------------------------------------------------------------------------------- */

/* The sample as a rank of its own. Returns its path. */
static const char *write_rank(const char *name, int rank, unsigned world, unsigned life)
{
    struct spool_builder b;
    struct sample_ends ends;
    const char *path = support_path(name);
    build_sample(&b, &ends);
    build_header(&b)->rank = rank;
    build_header(&b)->world = world;
    build_header(&b)->life = life;
    build_write(&b, path, b.bytes);
    build_free(&b);
    return path;
}

/* All that a rank has, without the numbers that stand for it and its rows in the database. */
static const char *rows_of(const char *path, int64_t key)
{
    static char text[2][20000];
    static unsigned turn;
    char query[2000], *into = text[turn++ % 2];
    snprintf(query, sizeof query,
             "SELECT call, kind, ended, bytes, peer, tag, thread, post_begin_ns, post_ns, mpi_ns, completion_call, "
             "completion_begin_ns, completed_together, (SELECT group_concat(address) FROM frame f WHERE f.call_path_id = "
             "r.call_path_id), (SELECT name FROM communicator c WHERE c.id = r.communicator_id AND c.rank = r.rank), "
             "(SELECT group_concat(value) FROM request_counter WHERE request_id = r.id) FROM requests r WHERE rank = %lld "
             "ORDER BY id", (long long)key);
    snprintf(into, sizeof *text, "%s", support_rows(path, query));
    snprintf(query, sizeof query,
             "SELECT call, kind, bytes, peer, thread, begin_ns, duration_ns, completed, receive_bytes, (SELECT group_concat("
             "value) FROM call_counter WHERE call_row_id = r.id) FROM calls r WHERE rank = %lld ORDER BY id", (long long)key);
    size_t length = strlen(into);
    snprintf(into + length, sizeof *text - length, "%s", support_rows(path, query));
    snprintf(query, sizeof query,
             "SELECT reason, size_class, count, inside_ns, (SELECT number FROM thread t WHERE t.id = thread_id AND t.rank = "
             "tally.rank) FROM tally WHERE rank = %lld", (long long)key);
    length = strlen(into);
    snprintf(into + length, sizeof *text - length, "%s", support_rows(path, query));
    return into;
}

/* Whatever is in front of a rank, its rows say the same; further lives and worlds have keys behind all ranks. */
static void test_several_ranks(void)
{
    char alone[256];
    write_rank("rank-5.spool", 5, 1, 1);
    snprintf(alone, sizeof alone, "%s", support_path("rank-5.db"));
    CHECK_EQUAL(store_convert(support_path("rank-5.spool"), alone, NULL, NULL, &result, error, sizeof error), 0);
    struct store_spool spools[] = {{.path = strdup(write_rank("rank-2.spool", 2, 1, 1))},
                                   {.path = strdup(support_path("rank-5.spool"))},
                                   {.path = strdup(support_path("none.spool"))},
                                   {.path = strdup(write_rank("rank-2-2.spool", 2, 1, 2))},
                                   {.path = strdup(write_rank("world-2-rank-0.spool", 0, 2, 1))}};
    database = support_path("node-n.db");
    CHECK_EQUAL(store_convert_all(spools, 5, database, NULL, NULL, error, sizeof error), 0);
    CHECK_TEXT(rows("PRAGMA integrity_check"), "ok\n");
    CHECK_TEXT(rows("SELECT rank, world, world_rank, life FROM rank ORDER BY rank"), "2|1|2|1\n5|1|5|1\n8|1|2|2\n9|2|0|1\n");
    CHECK(strlen(rows_of(alone, 5)) > 100);
    CHECK_TEXT(rows_of(database, 5), rows_of(alone, 5));
    CHECK_TEXT(rows_of(database, 2), rows_of(database, 8));
    CHECK(strstr(spools[2].error, "none.spool cannot be opened") != NULL);
    for (int i = 0; i < 5; i++) {
        CHECK_EQUAL(spools[i].result.requests, i == 2 ? 0 : result.requests);
        CHECK_EQUAL(*spools[i].error != '\0', i == 2);
        free((char *)spools[i].path);
    }
}

static void test_none_of_several(void)
{
    struct store_spool spools[] = {{.path = "/nowhere/rank-0.spool"}, {.path = "/nowhere/rank-1.spool"}};
    unsigned files = support_files();
    CHECK_EQUAL(store_convert_all(spools, 2, support_path("node-m.db"), NULL, NULL, error, sizeof error), -1);
    CHECK(strstr(error, "/nowhere/rank-0.spool cannot be opened") != NULL);
    CHECK_EQUAL(support_files(), files);
}

/* A run of which a part has no rows: when it had, what was left out, and calls that ended requests without a row. */
static void test_long_run_in_parts(void)
{
    struct spool_builder b;
    build_spool(&b);
    chunk_at chunk = build_chunk(&b, SPOOL_CHUNK_STREAM, 0, SPOOL_CHUNK_ALIGN, 1000);
    build_thread(&b, chunk, 0, 1);
    build_operation(&b, chunk, (struct spool_operation){.id = 1, .call = CALL_MPI_Isend, .kind = SPOOL_SEND, .bytes = 8});
    build_operation(&b, chunk, (struct spool_operation){.id = 2, .call = CALL_MPI_Waitall});
    build_outcome(&b, chunk, (struct spool_outcome){.id = 1, .operation = 1, .bytes = 8, .ended = SPOOL_WAITED});
    build_header(&b)->summarized = SPOOL_FULL_MAX_MB;
    build_header(&b)->lost_marks = 6;
    BUILD_HOT(&b, chunk, SPOOL_DETAIL, 500, 0, 0, 3000, 0);
    BUILD_HOT(&b, chunk, SPOOL_LEFT_OUT, 1, 17, 3100, 800);
    BUILD_HOT(&b, chunk, SPOOL_CALL, 2, 5000, 5, 0);
    BUILD_HOT(&b, chunk, SPOOL_REQUEST, 1, 500, 7, 0, 0);
    BUILD_HOT(&b, chunk, SPOOL_TOGETHER, 4);
    BUILD_HOT(&b, chunk, SPOOL_CALL, 2, 100, 5, 0);
    BUILD_HOT(&b, chunk, SPOOL_REQUEST, 1, 50, 7, 0, 0);
    BUILD_HOT(&b, chunk, SPOOL_DETAIL, 507, 1, 4000, 1000, 1);
    BUILD_HOT(&b, chunk, SPOOL_LEFT_OUT, 99, 17, 3100, 800); /* of nothing that is known */
    BUILD_HOT(&b, chunk, SPOOL_DETAIL, 508, SPOOL_STAGES, 4000, 1000, 1); /* no stage */
    BUILD_HOT(&b, chunk, SPOOL_MARK, 70, 2, 7);                      /* a name that is not known */
    BUILD_HOT(&b, chunk, SPOOL_MARK, 70, (uint64_t)1 << 40);         /* no level */
    build_mark_name(&b, chunk, 8, "");                               /* no name */
    CHECK_EQUAL(convert(&b), 0);
    int64_t rank = support_number(database, "SELECT rank FROM rank");
    char expected[160];
    snprintf(expected, sizeof expected, "%lld|500|0|0|3000|0\n%lld|507|1|4000|5000|1\n", (long long)rank, (long long)rank);
    CHECK_TEXT(rows("SELECT * FROM detail"), expected);
    CHECK_TEXT(rows("SELECT name, count, begin_ns, end_ns FROM left_out JOIN operation o ON o.id = operation_id "
                    "JOIN call_name n ON n.id = o.call_id"), "MPI_Isend|17|3100|3900\n");
    CHECK_TEXT(rows("SELECT completed FROM call"), "4\n1\n");
    CHECK_TEXT(rows("SELECT count(*) FROM mark"), "0\n");
    CHECK_TEXT(rows("SELECT lost_records FROM rank"), "5\n");
    CHECK_TEXT(rows("SELECT name, value, source FROM option"), "damaged_pieces|5|conversion\nlost_marks|6|conversion\n");
    CHECK_TEXT(support_broken_rules(database), "");
    build_free(&b);
}

int main(void)
{
    support_begin();
    test_sample();
    test_finalized();
    test_ends();
    test_processor();
    test_killed_at_the_end();
    test_clocks();
    test_long_run();
    test_related_operations();
    test_long_run_in_parts();
    test_many_rows();
    test_again();
    test_several_ranks();
    test_none_of_several();
    support_end();
    return check_summary();
}
