/* A spool as a killed rank leaves it, for the fuzz test: spool FILE HOST BOOT_ID RANK. */
#include "spool_builder.h"

#include <stdlib.h>
#include <string.h>

enum { CALLS = 40, WAITALL = 1, ISEND = 2, IRECV = 3 };

static void define(struct spool_builder *b, chunk_at chunk)
{
    build_meta(b, chunk, "executable", "/nowhere/app");
    build_meta(b, chunk, "command", "./app -n 4");
    build_meta(b, chunk, "mpi_abi", "openmpi");
    build_meta(b, chunk, "mpi_library", "Open MPI v4.1.4, package: x");
    build_meta(b, chunk, "mpi_standard", "3.1");
    build_meta(b, chunk, "lapscope_version", "0.1.0");
    build_meta(b, chunk, "job", "job");
    build_meta(b, chunk, "option.LAPSCOPE_MAX_MB", "512\tdefault");
    build_meta(b, chunk, "option.LAPSCOPE_INJECT", "timer\tenvironment");
    build_meta(b, chunk, "environment.OMPI_MCA_btl", "tcp,self");
    build_meta(b, chunk, "counter.0", "PAPI_TOT_INS\t\t\tInstructions");
    build_meta(b, chunk, "counted.0", "4711");
    build_meta(b, chunk, "copied_sends", "\t100000000\t1048576\t7\t700000\t3\t2\t1\t262144\t1\t0");
    build_meta(b, chunk, "injector", "timer\t\tperf\t100000000\t250\t900\t40\t5000");
    build_thread(b, chunk, 0, 10);
    build_module(b, chunk, (struct spool_module){.id = 1, .base = 0x1000, .size = 0x10000, .begin = 0x1000}, "/nowhere/app");
    for (uint32_t id = 1; id <= 3; id++)
        build_path(b, chunk, id, 2, (const uint64_t[]){0x1000 + 0x100 * id, 0x2000});
    build_comm(b, chunk, (struct spool_comm){.id = 1, .identity = 42, .size = 4}, "MPI_COMM_WORLD", NULL);
    build_operation(b, chunk, (struct spool_operation){.id = 1, .call = WAITALL, .path = 1, .peer = SPOOL_NO_PEER,
                                                       .tag = SPOOL_NO_TAG});
    build_operation(b, chunk, (struct spool_operation){.id = 2, .call = ISEND, .kind = SPOOL_SEND, .path = 2, .comm = 1,
                                                       .peer = 1, .tag = 7, .bytes = 1000, .source = 1, .actual_tag = 7,
                                                       .actual_bytes = 1000});
    build_operation(b, chunk, (struct spool_operation){.id = 3, .call = IRECV, .kind = SPOOL_RECV, .path = 3, .comm = 1,
                                                       .peer = 1, .tag = 7, .bytes = 1000, .source = 1, .actual_tag = 7,
                                                       .actual_bytes = 1000});
    for (uint32_t id = 1; id <= 2; id++)
        build_outcome(b, chunk, (struct spool_outcome){.id = id, .operation = id + 1, .source = 1, .tag = 7, .bytes = 1000,
                                                       .ended = SPOOL_WAITED});
}

int main(int count, char **words)
{
    struct spool_builder b;
    if (count != 5)
        return 2;
    build_spool(&b);
    struct spool_file_header *header = build_header(&b);
    strncpy(header->host, words[2], sizeof header->host - 1);
    strncpy(header->boot_id, words[3], sizeof header->boot_id - 1);
    header->rank = atoi(words[4]);
    header->world = 1;
    header->world_size = 4;
    chunk_at stream = build_chunk(&b, SPOOL_CHUNK_STREAM, 0, SPOOL_CHUNK_ALIGN, 1000);
    define(&b, stream);
    for (unsigned i = 0; i < CALLS; i++) {
        BUILD_HOT(&b, stream, SPOOL_COUNTERS, 0, 2 * i, 0, 0, 0);
        BUILD_HOT(&b, stream, SPOOL_CALL, 1, 10000, 3000, 0);
        BUILD_HOT(&b, stream, SPOOL_REQUEST, 1, 4000, 200, 300, 0);
        BUILD_HOT(&b, stream, SPOOL_EXTRA, 3, 51, 201, 181, 301);
        BUILD_HOT(&b, stream, SPOOL_REQUEST, 2, 3000, 200, 300, 0);
    }
    chunk_at live = build_chunk(&b, SPOOL_CHUNK_LIVE, 0, SPOOL_CHUNK_ALIGN, 0);
    build_chunk_head(&b, live)->has_state = 1;
    struct spool_thread_state *state = build_state(&b, live);
    *state = (struct spool_thread_state){.current_operation = 1, .current_begin = 420000, .mpi_ticks = 150000, .calls = 130};
    for (unsigned i = 0; i < 2; i++)
        *build_live(&b, live, i) = (struct spool_live){.operation = 3, .post_begin = 410000 + i * 1000, .post_ticks = 200};
    chunk_at tally = build_chunk(&b, SPOOL_CHUNK_TALLY, 0, SPOOL_CHUNK_ALIGN, 0);
    *build_tally(&b, tally, 0) = (struct spool_tally){.call_plus_1 = WAITALL + 1, .path = 1, .count = 10, .inside_ticks = 400};
    build_write(&b, words[1], b.bytes);
    build_free(&b);
    return 0;
}
