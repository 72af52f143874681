/* When a process was over. */
#ifndef LAPSCOPE_GONE_H
#define LAPSCOPE_GONE_H

#include "../spool/definitions.h"

/* Nanoseconds since its epoch, of a process that ended so (enum spool_end). What has said that it ends has set its clock then; what left
 * no word is over, now, when it is seen from here to have ended. -1: by MPI_Finalize, not seen, or the clocks do not agree: the moment
 * has to be behind `end_ns`, the last one that is recorded. */
int64_t gone_ns(const struct spool_definitions *definitions, const struct spool_file_header *header, uint32_t end, int64_t end_ns);

#endif
