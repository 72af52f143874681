/* The text of a job's record (schema/job.def): at most 64 KiB, however many ranks the node has and sites they met. */
#ifndef LAPSCOPE_JOB_PAGE_H
#define LAPSCOPE_JOB_PAGE_H

#include "../base/job.h"
#include "job_text.h"
#include "meeting.h"

enum { JOB_PAGE_BYTES = 65536 };

/* What the process knows of its job. */
struct job_page_facts {
    struct job job;
    char batch_job[64], host[256];
    int64_t nodes, user;     /* nodes 0: not known */
    int has_command;         /* whether it may be told */
    int64_t began_unix_ns;   /* of this process, in case nobody has recorded anything yet */
};

/* Writes the page of all that have a seat. Returns 0 where there is no memory for it. */
int job_page_write(struct job_text *text, const struct job_page_facts *facts, const struct attendance *own, int is_last);

#endif
