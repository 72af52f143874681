/* What overlaps or meets becomes one interval. */
#ifndef LAPSCOPE_MERGE_H
#define LAPSCOPE_MERGE_H

#include "../preload/devices.h"

/* In place, by device and work, and within them in the order of time. Returns how many are left. */
size_t merge_busy(struct lapscope_device_busy *busy, size_t count);

#endif
