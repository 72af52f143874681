#include "merge.h"

#include <stdlib.h>

static int by_lane_and_time(const void *a, const void *b)
{
    const struct lapscope_device_busy *left = a, *right = b;
    if (left->device != right->device)
        return left->device < right->device ? -1 : 1;
    if (left->work != right->work)
        return left->work < right->work ? -1 : 1;
    return left->begin_ns < right->begin_ns ? -1 : left->begin_ns > right->begin_ns;
}

size_t merge_busy(struct lapscope_device_busy *busy, size_t count)
{
    size_t left = 0;
    qsort(busy, count, sizeof *busy, by_lane_and_time);
    for (size_t i = 0; i < count; i++) {
        struct lapscope_device_busy *last = left ? &busy[left - 1] : NULL;
        int is_same = last && last->device == busy[i].device && last->work == busy[i].work;
        if (!is_same || busy[i].begin_ns > last->end_ns)
            busy[left++] = busy[i];
        else if (busy[i].end_ns > last->end_ns)
            last->end_ns = busy[i].end_ns;
    }
    return left;
}
