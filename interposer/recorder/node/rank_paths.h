/* The call paths of one rank's spool: a path that its sums name becomes frames of the node. */
#ifndef LAPSCOPE_RANK_PATHS_H
#define LAPSCOPE_RANK_PATHS_H

#include "node_frames.h"
#include "rank_view.h"

enum { RANK_MODULES = 1024, RANK_FRAMES = 4096, RANK_PATH_BUCKETS = 4096 };

struct rank_paths {
    struct {
        uint64_t begin, end, bias;
        struct node_module module;
        uint16_t place;      /* of the node's, plus 1; 0: not looked up yet */
    } modules[RANK_MODULES];
    unsigned module_count;
    const struct spool_frame *entries;
    unsigned entry_count;
    uint16_t buckets[RANK_PATH_BUCKETS], next[RANK_FRAMES]; /* entries by identity, plus 1 */
};

void rank_paths_add_module(struct rank_paths *paths, const struct spool_view *module);

/* The chunk of frames, which the rank may be changing. */
void rank_paths_add_frames(struct rank_paths *paths, const struct spool_chunk *chunk);

/* The place of a path's innermost frame among the node's, plus 1; 0: it is not known. `is_full`: there is no room for it. */
uint16_t rank_paths_place(struct rank_paths *paths, struct node_frames *frames, uint32_t path, int *is_full);

#endif
