#include "sample.h"

#include "../recorder/base/call.h"

#include <string.h>

enum { CHUNK = SPOOL_CHUNK_ALIGN };

enum { OP_ISEND = 1, OP_IRECV, OP_WAITALL, OP_RECV, OP_SENDRECV, OP_SENDRECV_RECEIVE, OP_BCAST, OP_ALLREDUCE };

static void define_facts(struct spool_builder *b, chunk_at chunk)
{
    build_meta(b, chunk, "executable", "/home/u/app");
    build_meta(b, chunk, "command", "./app -n 4");
    build_meta(b, chunk, "mpi_abi", "openmpi");
    build_meta(b, chunk, "mpi_library", "Open MPI 4.1.4 \xe2\x80\x94 \xff"); /* a dash in UTF-8, then a byte that is none */
    build_meta(b, chunk, "mpi_standard", "3.1");
    build_meta(b, chunk, "lapscope_version", "0.1.0");
    build_meta(b, chunk, "job", "j1");
    build_meta(b, chunk, "option.LAPSCOPE_MAX_MB", "512\tdefault");
    build_meta(b, chunk, "environment.OMPI_MCA_btl", "tcp,self");
    build_meta(b, chunk, "counter.0", "sde:::app::WORK\titems\t\twork done");
    build_meta(b, chunk, "counter.1", "PAPI_TOT_INS\t\tnot available on this processor\t");
    for (char key[] = "counter.2", name[] = "c2\t\t\t"; name[1] <= '5'; key[8]++, name[1]++)
        build_meta(b, chunk, key, name);
    build_meta(b, chunk, "cvar.btl_tcp_eager_limit", "65536");
}

/* In thread 0's first chunk. MPI_COMM_WORLD, and a communicator of the world ranks 3, 5, 1 in which this is rank 0. */
/* Of addresses that are lines of a function. */
#define PYTHON (UINT64_C(3) << 44 | UINT64_C(1) << 63)

static void define_in_first(struct spool_builder *b, chunk_at chunk)
{
    static const int32_t members[] = {3, 5, 1};
    build_thread(b, chunk, 0, 100);
    define_facts(b, chunk);
    build_comm(b, chunk, (struct spool_comm){.id = 1, .identity = 77, .size = 8, .comm_rank = 3}, "MPI_COMM_WORLD", NULL);
    build_comm(b, chunk, (struct spool_comm){.id = 2, .identity = 88, .ordinal = 1, .size = 3, .members = 3}, "MPI_Comm_split",
               members);
    build_mark_name(b, chunk, 1, "solve");
    build_path(b, chunk, 1, 3, (const uint64_t[]){0x7f0000001234, PYTHON | 41 << 12 | 5, 0x500});
    build_operation(b, chunk, (struct spool_operation){OP_ISEND, CALL_MPI_Isend, SPOOL_SEND, 1, 2, 1, 7, 4096, 1, 7, 4096, 0, 0});
    build_outcome(b, chunk, (struct spool_outcome){1, OP_ISEND, 1, 7, 4096, SPOOL_WAITED, 0});
    build_operation(b, chunk, (struct spool_operation){OP_RECV, CALL_MPI_Recv, SPOOL_RECV, 1, 1, SPOOL_ANY_SOURCE,
                                                       SPOOL_ANY_TAG, 16, 2, 5, 8, 0, 0});
}

/* In thread 1's chunk, and used by thread 0 too. */
static void define_in_second(struct spool_builder *b, chunk_at chunk)
{
    build_thread(b, chunk, 1, 101);
    build_module(b, chunk, (struct spool_module){.id = 1, .base = 0x7f0000000000, .size = 0x3000, .begin = 0x7f0000001000},
                 "/lib/libapp.so");
    build_module(b, chunk, (struct spool_module){.id = 2, .base = PYTHON, .size = UINT64_C(1) << 44, .begin = PYTHON}, "/home/halo.py");
    build_operation(b, chunk, (struct spool_operation){OP_IRECV, CALL_MPI_Irecv, SPOOL_RECV, 1, 1, SPOOL_ANY_SOURCE, 9, 200,
                                                       SPOOL_ANY_SOURCE, 9, 200, 0, 0});
    build_outcome(b, chunk, (struct spool_outcome){2, OP_IRECV, 6, 9, 100, SPOOL_WAITED, 0});
    build_outcome(b, chunk, (struct spool_outcome){3, OP_ISEND, 1, 7, 4096, SPOOL_TESTED, 0});
    build_operation(b, chunk, (struct spool_operation){OP_WAITALL, CALL_MPI_Waitall, SPOOL_OTHER, 0, 0, SPOOL_NO_PEER,
                                                       SPOOL_NO_TAG, 0, SPOOL_NO_PEER, SPOOL_NO_TAG, 0, 0, 0});
    build_operation(b, chunk, (struct spool_operation){OP_SENDRECV, CALL_MPI_Sendrecv, SPOOL_SEND, 1, 3, 0, 1, 32, 0, 1, 32, 0, 0});
    build_operation(b, chunk, (struct spool_operation){OP_SENDRECV_RECEIVE, CALL_MPI_Sendrecv, SPOOL_RECV, 1, 2,
                                                       SPOOL_PROC_NULL, 1, 32, SPOOL_PROC_NULL, SPOOL_ANY_TAG, 0, 0, 0});
}

/* In thread 0's second chunk. The inter-communicator's remote group: world rank 6, and one outside MPI_COMM_WORLD. */
static void define_in_third(struct spool_builder *b, chunk_at chunk)
{
    static const int32_t members[] = {3, 4, 6, -1};
    build_comm(b, chunk, (struct spool_comm){.id = 3, .identity = 99, .inter = 1, .size = 2, .remote_size = 2, .members = 4},
               "MPI_Intercomm_create", members);
    build_operation(b, chunk, (struct spool_operation){OP_BCAST, CALL_MPI_Bcast, SPOOL_COLLECTIVE, 1, 2, 1, SPOOL_NO_TAG, 64, 1,
                                                       SPOOL_NO_TAG, 64, 0, 0});
    build_operation(b, chunk, (struct spool_operation){OP_ALLREDUCE, CALL_MPI_Allreduce, SPOOL_COLLECTIVE, 0, 3, SPOOL_NO_PEER,
                                                       SPOOL_NO_TAG, 8, SPOOL_NO_PEER, SPOOL_NO_TAG, 8, 0, 0});
}

static void fill_live(struct spool_builder *b, chunk_at chunk, struct sample_ends *ends)
{
    *build_state(b, chunk) =
        (struct spool_thread_state){.current_operation = OP_RECV, .current_begin = 6000, .mpi_ticks = 555, .calls = 12};
    ends->current_call = chunk + sizeof(struct spool_chunk) + sizeof(struct spool_thread_state);
    *build_live(b, chunk, 0) = (struct spool_live){.operation = OP_ISEND, .injection_arm = 1 | SPOOL_MEMORY_MANAGED << SPOOL_LIVE_MEMORY_SHIFT, .post_begin = 5000,
                                                   .post_ticks = 12, .outstanding_bytes = 128, .unsuccessful_tests = 2,
                                                   .first_unsuccessful_test = 5100,
                                                   .last_unsuccessful_test = 5300, .last_incomplete = 5200};
    /* ended by thread 1's last REQUEST, and the process killed before this was cleared: no request of its own */
    *build_live(b, chunk, 1) = (struct spool_live){.operation = OP_ISEND, .post_begin = 1050, .post_ticks = 5};
    /* never tested: what stands in the fields of tests is of an earlier request */
    *build_live(b, chunk, 3) = (struct spool_live){.operation = OP_IRECV, .flags = SPOOL_LIVE_SEEN_COMPLETE, .post_begin = 5050,
                                                   .seen_complete = 5400, .first_unsuccessful_test = 77,
                                                   .last_unsuccessful_test = 88, .last_incomplete = 99};
    ends->pending[0] = ends->current_call + sizeof(struct spool_live);
    ends->pending[1] = ends->current_call + 4 * sizeof(struct spool_live);
}

static void fill_tally(struct spool_builder *b, chunk_at chunk, struct sample_ends *ends)
{
    *build_tally(b, chunk, 0) =
        (struct spool_tally){.call_plus_1 = CALL_MPI_Test + 1, .path = 1, .count = 9, .inside_ticks = 90};
    *build_tally(b, chunk, 1) = (struct spool_tally){.call_plus_1 = CALL_MPI_Isend + 1, .size_class = 13, .reason = 1,
                                                     .count = 2, .bytes = 8192, .inside_ticks = 10, .completion_ticks = 20,
                                                     .mpi_ticks = 30, .window_ticks = 40};
    for (size_t i = 0; i < 2; i++)
        ends->tallies[i] = chunk + sizeof(struct spool_chunk) + (i + 1) * sizeof(struct spool_tally);
}

static void fill_devices(struct spool_builder *b, chunk_at chunk)
{
    build_chunk_head(b, chunk)->has_state = 1;
    struct spool_device_state *state = (struct spool_device_state *)(void *)(b->data + chunk + sizeof(struct spool_chunk));
    struct spool_device_busy *rows = (struct spool_device_busy *)(void *)(state + 1);
    *state = (struct spool_device_state){.source = "libcupti.so.12", .resolution_ns = 20000, .lost = 3};
    rows[0] = (struct spool_device_busy){.begin = 1500, .ticks = 100, .busy_ticks = 90, .device = 1, .work_plus_1 = 1};
    rows[1] = (struct spool_device_busy){.begin = 1600, .ticks = 7, .busy_ticks = 7, .work_plus_1 = 3};
}

void build_sample(struct spool_builder *b, struct sample_ends *ends)
{
    build_spool(b);
    chunk_at first = build_chunk(b, SPOOL_CHUNK_STREAM, 0, CHUNK, 1000);
    chunk_at live0 = build_chunk(b, SPOOL_CHUNK_LIVE, 0, CHUNK, 0);
    chunk_at tally = build_chunk(b, SPOOL_CHUNK_TALLY, 0, CHUNK, 0);
    chunk_at second = build_chunk(b, SPOOL_CHUNK_STREAM, 1, CHUNK, 1000);
    chunk_at live1 = build_chunk(b, SPOOL_CHUNK_LIVE, 1, CHUNK, 0);
    chunk_at devices = build_chunk(b, SPOOL_CHUNK_DEVICE, 0, CHUNK, 0);
    chunk_at third = build_chunk(b, SPOOL_CHUNK_STREAM, 0, CHUNK, 1000);
    define_in_first(b, first);
    define_in_second(b, second);
    define_in_third(b, third);

    BUILD_HOT(b, first, SPOOL_COUNTERS, 0, 9, 22, 24, 26); /* -5, 11, 12, 13 */
    BUILD_HOT(b, first, SPOOL_COUNTERS, 4, 28);
    ends->calls[0] = BUILD_HOT(b, first, SPOOL_CALL, OP_WAITALL, 500, 300, 0);
    BUILD_HOT(b, first, SPOOL_EXTRA, 3, 51, 201, 181, 301);
    BUILD_HOT(b, first, SPOOL_COUNTERS, 0, ((uint64_t)1 << 56) - 2, 2, 4, 6);
    BUILD_HOT(b, first, SPOOL_COUNTERS, 4);
    ends->requests[0] = BUILD_HOT(b, first, SPOOL_REQUEST, 1, 400, 20, 30, 64);
    ends->requests[1] = BUILD_HOT(b, first, SPOOL_REQUEST, 2, 350, 10, 0, 0);
    BUILD_HOT(b, first, SPOOL_STARVED, 1450, 1000, 600);
    BUILD_HOT(b, first, SPOOL_CPU, 30, 10);
    ends->calls[1] = BUILD_HOT(b, first, SPOOL_CALL, OP_RECV, 1000, 50, 0);
    BUILD_HOT(b, third, SPOOL_MARK, 40, 2, 1); /* 1: a region begins */
    ends->calls[2] = BUILD_HOT(b, third, SPOOL_CALL, OP_BCAST, 4000, 70, 0);
    ends->calls[3] = BUILD_HOT(b, third, SPOOL_CALL, OP_ALLREDUCE, 100, 71, 0);
    ends->calls[4] = BUILD_HOT(b, second, SPOOL_CALL, OP_WAITALL, 700, 100, 0);
    BUILD_HOT(b, second, SPOOL_MARK, 50, 4);   /* 2: a step */
    BUILD_HOT(b, second, SPOOL_MARK, 60, 1, 1); /* -1, by a name of another stream */
    BUILD_HOT(b, second, SPOOL_FOREIGN, 0, 2, SPOOL_MEMORY_DEVICE);
    ends->requests[2] = BUILD_HOT(b, second, SPOOL_REQUEST, 3, 650, 5, 0, 0);
    ends->calls[5] = BUILD_HOT(b, second, SPOOL_CALL, OP_SENDRECV, 10, 5, OP_SENDRECV_RECEIVE);

    fill_devices(b, devices);
    fill_live(b, live0, ends);
    *build_state(b, live1) = (struct spool_thread_state){.thread = 1, .mpi_ticks = 100, .calls = 5};
    fill_tally(b, tally, ends);
    build_header(b)->lost_records = 1;
    build_header(b)->unknown_requests = 2;
}
