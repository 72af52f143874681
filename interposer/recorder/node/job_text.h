/* Text of a job's record, in memory of a fixed size. What does not fit is seen at the end: `is_cut`. */
#ifndef LAPSCOPE_JOB_TEXT_H
#define LAPSCOPE_JOB_TEXT_H

#include <stddef.h>
#include <stdint.h>

struct job_text {
    char *begin;
    size_t used, bytes;
    int is_cut;
};

#define JOB_NULL INT64_MIN

/* Texts that are told, and longer ones, are cut off behind so many bytes. */
enum { JOB_LONGEST_TEXT = 2048 };

void job_put(struct job_text *text, const char *string);

/* A value and what follows it. */
void job_put_number(struct job_text *text, int64_t number, char end);
void job_put_text(struct job_text *text, const char *value, char end);

#endif
