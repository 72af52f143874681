/* What the ranks of a node have recorded, put together: sites that are the same on several of them are one. */
#ifndef LAPSCOPE_NODE_SUMS_H
#define LAPSCOPE_NODE_SUMS_H

#include "../spool/cell.h"
#include "node_frames.h"
#include "rank_view.h"

enum { NODE_SITES = 2048 /* of which half stay where there are more */, NODE_BUCKETS = 2048 };

struct node_site {
    struct spool_cell cell;  /* call, reason and size class are those of its sums; its path is the frame's place plus 1 */
    uint64_t bounds_ns;      /* of the ranks that have it: how much time those may have had that these have folded away */
    uint64_t most_ns;
    uint32_t most_rank, processes, last_seat;
    uint16_t next;
};

enum node_time { NODE_POSTING, NODE_COMPLETING, NODE_BLOCKING, NODE_COLLECTIVE, NODE_RMA, NODE_IO, NODE_UNSUCCESSFUL_TEST, NODE_OTHER, NODE_TIMES };

struct node_rank {
    int64_t began_unix_ns, init_end_ns, end_ns; /* the last two since the first */
    int64_t pid, life, world, world_rank, world_size, thread_level;
    uint32_t end;            /* enum spool_end */
    int is_alive;
    uint64_t threads, requests, calls, unsuccessful_tests, sent_bytes, received_bytes, lost_records, unknown_requests;
    uint64_t overlappable_ns, times_ns[NODE_TIMES];
    int64_t processor[7];    /* the columns of `processor`; -1: not known */
};

struct node_injection {
    uint64_t processes, requests, tests, found, test_ns, idle_ns, interrupts, spent_ns;
    char mode[16], problem[256], automatic[1024];
};

struct node_sums {
    struct node_frames frames;
    struct node_site sites[NODE_SITES];
    uint16_t site_buckets[NODE_BUCKETS];
    unsigned site_count, rank_count;
    uint64_t bounds_ns;      /* of all ranks: see node_site */
    uint64_t folded_ns;      /* the most that a site had that was folded away */
    struct node_injection injection;
    struct node_rank ranks[];
};

/* Room for so many ranks, untouched; NULL: no memory. */
struct node_sums *node_sums_create(unsigned ranks);
void node_sums_destroy(struct node_sums *sums, unsigned ranks);

/* Adds a rank, whose view stays open as long as the sums are used. */
void node_sums_add(struct node_sums *sums, const struct rank_view *view, unsigned seat, int is_alive);

/* Which of the times of a rank a call's time is; NODE_TIMES: none, as it begins or ends MPI. */
enum node_time node_time_of(unsigned call);

/* Leaves the sites with the most time, at most so many; the others become parts of one of their function, without a frame. Sorts them. */
void node_sums_keep(struct node_sums *sums, unsigned sites);

/* Gives numbers to the frames of the sites that are left, and to their modules. */
void node_sums_number_frames(struct node_sums *sums);

#endif
