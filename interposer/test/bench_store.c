/*
 * What the conversion costs: bench_store [iterations] [keep].
 *
 * Makes a spool of so many iterations of MPI_Isend, MPI_Irecv, MPI_Waitall of both (one call row and two request rows),
 * converts it, and prints ns per row and bytes per row. Not a test: nothing is asserted but that the rows are there.
 */
#include "spool_builder.h"

#include "../recorder/base/call.h"
#include "../recorder/spool/reader.h"
#include "../recorder/store/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { CHUNK_BYTES = 8 << 20, SIZES = 16 };

static double seconds(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Operations 1 to SIZES: Isend; then Irecv; the last: Waitall. Outcomes 1 to 2 * SIZES: each of them waited for. */
static void define(struct spool_builder *b, chunk_at chunk)
{
    build_thread(b, chunk, 0, 4711);
    build_comm(b, chunk, (struct spool_comm){.id = 1, .size = 8, .comm_rank = 3}, "MPI_COMM_WORLD", NULL);
    build_path(b, chunk, 1, 3, (const uint64_t[]){0x1000, 0x2000, 0x3000});
    for (uint32_t i = 1; i <= 2 * SIZES; i++) {
        int receive = i > SIZES;
        struct spool_operation operation = {.id = i,
                                            .call = receive ? CALL_MPI_Irecv : CALL_MPI_Isend,
                                            .kind = receive ? SPOOL_RECV : SPOOL_SEND,
                                            .path = 1,
                                            .comm = 1,
                                            .peer = 4,
                                            .bytes = (uint64_t)1 << i % SIZES};
        build_operation(b, chunk, operation);
        build_outcome(b, chunk, (struct spool_outcome){i, i, 4, 0, operation.bytes, SPOOL_WAITED, 0});
    }
    build_operation(b, chunk,
                    (struct spool_operation){.id = 2 * SIZES + 1, .call = CALL_MPI_Waitall, .path = 1, .peer = SPOOL_NO_PEER,
                                             .tag = SPOOL_NO_TAG});
}

static void fill(struct spool_builder *b, long iterations)
{
    chunk_at chunk = build_chunk(b, SPOOL_CHUNK_STREAM, 0, CHUNK_BYTES, 1000);
    define(b, chunk);
    uint64_t now = 1000000, last = 1000;
    for (long i = 0; i < iterations; i++) {
        if (build_chunk_head(b, chunk)->used > CHUNK_BYTES - 512) {
            chunk = build_chunk(b, SPOOL_CHUNK_STREAM, 0, CHUNK_BYTES, 1000);
            last = 1000;
        }
        uint64_t noise = (uint64_t)i * 2654435761u % 5000;
        now += 20000 + noise;
        BUILD_HOT(b, chunk, SPOOL_CALL, 2 * SIZES + 1, now - last, 3000 + noise, 0);
        BUILD_HOT(b, chunk, SPOOL_REQUEST, 1 + (uint64_t)i % SIZES, 15000 + noise, 800 + noise % 97, 400, 0);
        BUILD_HOT(b, chunk, SPOOL_REQUEST, 1 + SIZES + (uint64_t)i % SIZES, 14000 + noise, 300 + noise % 89, 0, 0);
        last = now;
    }
    build_header(b)->end = SPOOL_FINALIZED;
    build_header(b)->finalize_begin = now;
}

/* Reading alone, for what SQLite costs is the difference. */
static double read_seconds(const char *path)
{
    struct spool_file file;
    struct spool_view view;
    char error[512];
    uint64_t sum = 0;
    double begin = seconds(CLOCK_PROCESS_CPUTIME_ID);
    if (spool_file_open(&file, path, error, sizeof error) != 0)
        return 0;
    for (size_t i = 0; i < file.part_count; i++) {
        struct spool_cursor cursor = spool_records(&file.parts[i]);
        while (spool_next_record(&file, &cursor, &view) > 0)
            sum += view.type >= SPOOL_CALL ? view.fields[1] : 0;
    }
    spool_file_close(&file);
    return sum ? seconds(CLOCK_PROCESS_CPUTIME_ID) - begin : 0;
}

int main(int argc, char **argv)
{
    long iterations = argc > 1 ? atol(argv[1]) : 2000000;
    char directory[] = "/tmp/bench_store.XXXXXX", spool[64], database[64], error[512] = "";
    struct spool_builder b;
    struct store_result result;
    struct stat facts;
    if (!mkdtemp(directory))
        return 2;
    snprintf(spool, sizeof spool, "%s/rank-3.spool", directory);
    snprintf(database, sizeof database, "%s/rank-3.db", directory);
    build_spool(&b);
    fill(&b, iterations);
    build_write(&b, spool, b.bytes);
    double spool_bytes = (double)b.bytes;
    build_free(&b);

    double reading = read_seconds(spool), wall = seconds(CLOCK_MONOTONIC), cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
    int failed = store_convert(spool, database, NULL, NULL, &result, error, sizeof error);
    wall = seconds(CLOCK_MONOTONIC) - wall;
    cpu = seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    if (failed || stat(database, &facts) != 0) {
        fprintf(stderr, "%s\n", error);
        return 1;
    }
    double rows = (double)(result.requests + result.calls);
    printf("%.0f rows (%llu requests): %.0f ns CPU a row (reading %.0f), %.0f ns wall; %.2f million requests/s; "
           "%.1f bytes a row, spool %.1f\n",
           rows, (unsigned long long)result.requests, cpu / rows * 1e9, reading / rows * 1e9, wall / rows * 1e9,
           (double)result.requests / cpu * 1e-6, (double)facts.st_size / rows, spool_bytes / rows);
    if (argc > 2) {
        printf("kept in %s\n", directory);
        return 0;
    }
    unlink(spool);
    unlink(database);
    rmdir(directory);
    return 0;
}
