/* When a process that left no word of its end was seen to be gone. */
#ifndef LAPSCOPE_GONE_H
#define LAPSCOPE_GONE_H

#include "../../../schema/spool.h"

/* Nanoseconds since its epoch, now, when the process of a spool is seen from here to have ended; -1 when it is not, or when the
 * clocks do not agree: the moment has to be behind `end_ns`, the last one that is recorded. */
int64_t gone_ns(const struct spool_file_header *header, int64_t end_ns);

#endif
