/*
 * Which job this process is of, and which of its MPI_COMM_WORLDs: found out without talking to anybody.
 *
 * A launcher tells each rank what only its job has. Open MPI numbers worlds in the name space of PMIx, Intel MPI in
 * variables, Hydra in the command line of the proxy, for which up to eight ancestors' command lines are looked through.
 * How many processes belong together is the launcher's own count, and only that of the launcher which named the job is
 * believed: what Slurm tells of a step is inherited by all that a launcher within it starts.
 */
#ifndef LAPSCOPE_JOB_H
#define LAPSCOPE_JOB_H

/*
 * Processes that MPI_Comm_spawn starts have a MPI_COMM_WORLD of their own, and belong to the job of their parents. The
 * launchers number the worlds of a job, in the order in which they start them: all ranks know their world's number
 * without being told. Where no number can be found, spawned processes are jobs of their own.
 *
 * Processes that a launcher has started together, but whose MPI does not understand it, have each a MPI_COMM_WORLD of
 * their own: those get the numbers in which the launcher counts them.
 */
struct job {
    char identity[256];      /* the same on all ranks, and no other job's */
    unsigned world;          /* 1: was launched; higher ones were spawned */
    char launch[64];         /* LAPSCOPE_LAUNCH: the `lapscope run` that it belongs to; empty: none */
    const char *launcher;    /* who has started it; NULL: not known */
    unsigned started;        /* processes that it has started together, as it tells them; 0: not told */
    unsigned number;         /* of this one among them */
    int is_alone;            /* in its MPI_COMM_WORLD, though others were started with it */
};

/* Whether two processes are of one job. Launchers whose names for jobs come round again, as where every container
 * begins with the same process ids, are told apart by their launches, where those are known. */
int job_is(const struct job *job, const char *identity, const char *launch);

/* Of a process whose MPI_COMM_WORLD has so many ranks. */
void job_find(struct job *job, int world_size);

/* Says on standard error that processes which were started together do not know of each other, and what mends that: one
 * of them. `abi` and `library` are those of the MPI, as `rank` has them. */
void job_say_alone(const struct job *job, const char *abi, const char *library);

#endif
