/* What overlaps becomes one interval; what is of another device or at other work does not. */
#include "check.h"

#include "../gpu/merge.h"

int main(void)
{
    struct lapscope_device_busy busy[] = {
        {50, 60, 0, DEVICE_KERNEL}, {10, 20, 0, DEVICE_TO_HOST}, {0, 40, 0, DEVICE_KERNEL}, {5, 9, 0, DEVICE_KERNEL},
        {40, 45, 0, DEVICE_KERNEL}, {0, 100, 1, DEVICE_KERNEL},
    };
    CHECK_EQUAL(merge_busy(busy, 6), 4);
    CHECK(busy[0].begin_ns == 0 && busy[0].end_ns == 45);
    CHECK(busy[1].begin_ns == 50 && busy[1].end_ns == 60);
    CHECK(busy[2].work == DEVICE_TO_HOST && busy[2].begin_ns == 10);
    CHECK(busy[3].device == 1 && busy[3].end_ns == 100);
    CHECK_EQUAL(merge_busy(busy, 0), 0);
    return check_summary();
}
