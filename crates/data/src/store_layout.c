/* store.rs writes these structs down a second time: a change on either side must not build. */
#include "../../../interposer/recorder/store/store.h"

#include "../../../interposer/recorder/spool/definitions.h"

#include <stddef.h>

_Static_assert(SPOOL_LONGEST_NS == INT64_C(1) << 56 && SPOOL_LATEST_EPOCH_NS == 7000000000000000000 &&
               SPOOL_MOST == (uint64_t)1 << 48 && SPOOL_MOST_BYTES == (uint64_t)INT64_MAX >> 1, "crates/data/src/db/check.rs");

#define LAYOUT(type, field, offset) _Static_assert(offsetof(struct type, field) == (offset), "crates/data/src/store.rs: " #field)

_Static_assert(sizeof(struct store_result) == 64, "crates/data/src/store.rs: Converted");
LAYOUT(store_result, rank, 0);
LAYOUT(store_result, life, 4);
LAYOUT(store_result, end, 8);
LAYOUT(store_result, world, 12);
LAYOUT(store_result, requests, 16);
LAYOUT(store_result, calls, 24);
LAYOUT(store_result, pending, 32);
LAYOUT(store_result, lost, 40);
LAYOUT(store_result, damaged, 48);
LAYOUT(store_result, damaged_at, 56);

_Static_assert(sizeof(struct store_spool) == 1096, "crates/data/src/store.rs: StoreSpool");
LAYOUT(store_spool, result, 8);
LAYOUT(store_spool, error, 72);

_Static_assert(sizeof(struct spool_info) == 664, "crates/data/src/store.rs: SpoolInfo");
LAYOUT(spool_info, rank, 0);
LAYOUT(spool_info, world_size, 4);
LAYOUT(spool_info, life, 8);
LAYOUT(spool_info, end, 12);
LAYOUT(spool_info, pid, 16);
LAYOUT(spool_info, pid_start, 24);
LAYOUT(spool_info, host, 32);
LAYOUT(spool_info, boot_id, 288);
LAYOUT(spool_info, pid_namespace, 328);
LAYOUT(spool_info, began_unix_ns, 336);
LAYOUT(spool_info, job, 344);
LAYOUT(spool_info, launch, 600);
