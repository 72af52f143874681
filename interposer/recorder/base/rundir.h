/* The run directory: one a job, agreed on by all ranks without talking to each other. */
#ifndef LAPSCOPE_RUNDIR_H
#define LAPSCOPE_RUNDIR_H

#include "job.h"

#include <stddef.h>

enum { RUNDIR_PATH_BYTES = 4096 };

struct rundir {
    char path[RUNDIR_PATH_BYTES];   /* absolute */
    struct job job;
    char spool[RUNDIR_PATH_BYTES];  /* this rank's files */
    char database[RUNDIR_PATH_BYTES];
    unsigned life;
};

/* Finds or makes the directory and names this rank's files. Returns 0, or an errno value with `error` saying what went
 * wrong with what. */
int rundir_open(struct rundir *dir, int rank, char *error, size_t error_bytes);

#endif
