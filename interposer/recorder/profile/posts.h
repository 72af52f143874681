/* Which call sites have requests under way: where a test would be for them. */
#ifndef LAPSCOPE_POSTS_H
#define LAPSCOPE_POSTS_H

#include "../../../schema/spool.h"

/* The sites of pending requests, by call path and call; hashed as words, and so without padding. Where there are more,
 * those with the least numbers, so that the same ones are the same set again. */
struct posts {
    uint32_t paths[SPOOL_SAMPLE_POSTS];
    uint16_t calls_plus_1[SPOOL_SAMPLE_POSTS]; /* 0: no more */
};

/* Puts one more in order; what is there already, or behind the last place, stays out. */
void posts_add(struct posts *posts, uint32_t path, uint16_t call);

#endif
