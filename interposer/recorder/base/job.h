/* Which job this process is of, and which of its MPI_COMM_WORLDs: found out without talking to anybody. */
#ifndef LAPSCOPE_JOB_H
#define LAPSCOPE_JOB_H

/*
 * Processes that MPI_Comm_spawn starts have a MPI_COMM_WORLD of their own, and belong to the job of their parents. The
 * launchers number the worlds of a job, in the order in which they start them: all ranks know their world's number
 * without being told. Where no number can be found, spawned processes are jobs of their own.
 */
struct job {
    char identity[256];      /* the same on all ranks, and no other job's */
    unsigned world;          /* 1: was launched; higher ones were spawned */
    char launch[64];         /* LAPSCOPE_LAUNCH: the `lapscope run` that it belongs to; empty: none */
};

/* Whether two processes are of one job. Launchers whose names for jobs come round again, as where every container
 * begins with the same process ids, are told apart by their launches, where those are known. */
int job_is(const struct job *job, const char *identity, const char *launch);

void job_find(struct job *job);

#endif
