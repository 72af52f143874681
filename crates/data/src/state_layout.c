/* state/layout.rs writes down where the fields of a spool lie: a change on either side must not build. */
#include "../../../schema/spool.h"

#include <stddef.h>

#define LAYOUT(type, field, offset) \
    _Static_assert(offsetof(struct type, field) == (offset), "crates/data/src/state/layout.rs: " #type "." #field)

_Static_assert(SPOOL_VERSION == 11 && SPOOL_HEADER_BYTES == 4096 && SPOOL_CHUNK_ALIGN == 65536 &&
                   SPOOL_MOST_ENTRIES_BYTES == 1 << 20, "crates/data/src/state/layout.rs");
_Static_assert(SPOOL_LAST_HOT == 26 && SPOOL_HOT_FIELDS == 5, "crates/data/src/state/layout.rs: record");
_Static_assert(sizeof(struct spool_meta) == 6 && sizeof(struct spool_module) == 32 && sizeof(struct spool_path) == 7 &&
               sizeof(struct spool_comm) == 35 && sizeof(struct spool_operation) == 55 && sizeof(struct spool_outcome) == 29 &&
               sizeof(struct spool_thread) == 10 && sizeof(struct spool_watch) == 69 && sizeof(struct spool_mark_name) == 5,
               "crates/data/src/state/layout.rs: record::HEADS");

LAYOUT(spool_file_header, version, 8);
LAYOUT(spool_file_header, header_bytes, 12);
LAYOUT(spool_file_header, end, 20);
LAYOUT(spool_file_header, rank, 24);
LAYOUT(spool_file_header, world_size, 28);
LAYOUT(spool_file_header, thread_level, 32);
LAYOUT(spool_file_header, life, 36);
LAYOUT(spool_file_header, pid, 40);
LAYOUT(spool_file_header, pid_start, 48);
LAYOUT(spool_file_header, host, 56);
LAYOUT(spool_file_header, boot_id, 312);
LAYOUT(spool_file_header, first, 352);
LAYOUT(spool_file_header, epoch_unix_ns, 368);
LAYOUT(spool_file_header, latest, 376);
LAYOUT(spool_file_header, latest_index, 408);
LAYOUT(spool_file_header, world, 412);
LAYOUT(spool_file_header, nominal_ticks_per_ns, 416);
LAYOUT(spool_file_header, init_end, 424);
LAYOUT(spool_file_header, finalize_begin, 432);
LAYOUT(spool_file_header, lost_records, 440);
LAYOUT(spool_file_header, unknown_requests, 448);
LAYOUT(spool_file_header, summarized, 456);
LAYOUT(spool_file_header, chunks, 460);
LAYOUT(spool_file_header, job, 464);
LAYOUT(spool_file_header, launch, 720);
LAYOUT(spool_file_header, pid_namespace, 784);

LAYOUT(spool_chunk, kind, 4);
LAYOUT(spool_chunk, thread, 6);
LAYOUT(spool_chunk, bytes, 8);
LAYOUT(spool_chunk, used, 16);
LAYOUT(spool_chunk, base, 24);
LAYOUT(spool_chunk, has_state, 32);

LAYOUT(spool_module, base, 4);
LAYOUT(spool_module, size, 12);
LAYOUT(spool_module, begin, 20);
LAYOUT(spool_module, path_bytes, 28);
LAYOUT(spool_module, build_id_bytes, 30);
LAYOUT(spool_path, frames, 4);
LAYOUT(spool_path, truncated, 6);
LAYOUT(spool_comm, identity, 4);
LAYOUT(spool_comm, ordinal, 12);
LAYOUT(spool_comm, inter, 16);
LAYOUT(spool_comm, size, 17);
LAYOUT(spool_comm, remote_size, 21);
LAYOUT(spool_comm, name_bytes, 29);
LAYOUT(spool_comm, members, 31);
LAYOUT(spool_operation, call, 4);
LAYOUT(spool_operation, kind, 6);
LAYOUT(spool_operation, path, 7);
LAYOUT(spool_operation, comm, 11);
LAYOUT(spool_operation, peer, 15);
LAYOUT(spool_operation, tag, 19);
LAYOUT(spool_operation, bytes, 23);
LAYOUT(spool_operation, source, 31);
LAYOUT(spool_operation, actual_tag, 35);
LAYOUT(spool_operation, actual_bytes, 39);
LAYOUT(spool_operation, init_operation, 47);
LAYOUT(spool_operation, receive_operation, 51);
LAYOUT(spool_outcome, operation, 4);
LAYOUT(spool_outcome, source, 8);
LAYOUT(spool_outcome, tag, 12);
LAYOUT(spool_outcome, bytes, 16);
LAYOUT(spool_outcome, ended, 24);
LAYOUT(spool_outcome, receive_operation, 25);
LAYOUT(spool_thread, tid, 2);

LAYOUT(spool_live, operation, 0);
LAYOUT(spool_live, thread, 4);
LAYOUT(spool_live, flags, 6);
LAYOUT(spool_live, post_begin, 8);
LAYOUT(spool_live, post_ticks, 16);
LAYOUT(spool_live, unsuccessful_tests, 40);
LAYOUT(spool_live, variable, 56);
LAYOUT(spool_live, last_unsuccessful_test, 80);
LAYOUT(spool_live, partitions, 120);
LAYOUT(spool_live, ready, 126);

LAYOUT(spool_thread_state, current_operation, 4);
LAYOUT(spool_thread_state, current_begin, 8);
LAYOUT(spool_thread_state, mpi_ticks, 16);
LAYOUT(spool_thread_state, calls, 24);
LAYOUT(spool_thread_state, waits_variables, 32);
LAYOUT(spool_thread_state, waits_count, 40);
LAYOUT(spool_thread_state, waits_stride, 44);
LAYOUT(spool_thread_state, unsuccessful_tests, 48);
LAYOUT(spool_thread_state, unsuccessful_operation, 56);

LAYOUT(spool_tally, call_plus_1, 0);
LAYOUT(spool_tally, reason, 3);
LAYOUT(spool_tally, path, 4);
LAYOUT(spool_tally, count, 8);
LAYOUT(spool_tally, bytes, 16);
LAYOUT(spool_tally, inside_ticks, 24);
LAYOUT(spool_injection, tests, 16);
LAYOUT(spool_injection, found, 24);
LAYOUT(spool_injection, test_ticks, 32);
LAYOUT(spool_injection, interrupts, 48);
