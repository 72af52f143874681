#include "posts.h"

_Static_assert(sizeof(struct posts) == 6 * sizeof(uint64_t), "hashed by words");

static uint64_t order_of(uint32_t path, uint16_t call_plus_1)
{
    return call_plus_1 ? (uint64_t)path << 16 | call_plus_1 : UINT64_MAX;
}

void posts_add(struct posts *posts, uint32_t path, uint16_t call)
{
    uint16_t call_plus_1 = (uint16_t)(call + 1);
    uint64_t order = order_of(path, call_plus_1);
    int at = 0;
    while (at < SPOOL_SAMPLE_POSTS && order_of(posts->paths[at], posts->calls_plus_1[at]) < order)
        at++;
    if (at == SPOOL_SAMPLE_POSTS || order_of(posts->paths[at], posts->calls_plus_1[at]) == order)
        return;
    for (int i = SPOOL_SAMPLE_POSTS - 1; i > at; i--) {
        posts->paths[i] = posts->paths[i - 1];
        posts->calls_plus_1[i] = posts->calls_plus_1[i - 1];
    }
    posts->paths[at] = path;
    posts->calls_plus_1[at] = call_plus_1;
}
