/* The run directory: one a job, agreed on by all ranks without talking to each other. */
#ifndef LAPSCOPE_RUNDIR_H
#define LAPSCOPE_RUNDIR_H

#include "job.h"
#include "nodedir.h"

#include <stddef.h>

enum { RUNDIR_PATH_BYTES = 4096 };

struct rundir {
    char path[RUNDIR_PATH_BYTES];   /* absolute */
    struct job job;
    char spool[RUNDIR_PATH_BYTES];  /* this rank's files */
    char database[RUNDIR_PATH_BYTES];
    unsigned life;
    int by_node;                    /* the spool is in the directory of `node`, and has no database of its own */
    struct nodedir node;
};

/* Finds or makes the directory, of a MPI_COMM_WORLD of so many. Returns 0, or an errno value with `error` saying what went wrong with
 * what. */
int rundir_make(struct rundir *dir, int world_size, char *error, size_t error_bytes);

/* The same, and names this rank's files. */
int rundir_open(struct rundir *dir, int rank, int world_size, char *error, size_t error_bytes);

/* Puts this rank's files into the run directory, as the node's storage cannot be used (`code`, an errno value). */
void rundir_leave_node(struct rundir *dir, int rank, int code);

#endif
