#define _GNU_SOURCE
#include "job.h"

#include "log.h"

#include <fcntl.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Launchers that tell every rank something that only this job has, the most telling first. */
static const char *const job_variables[][2] = {
    {"PMIX_NAMESPACE", NULL}, /* PMIx without a launcher known below: Slurm's, MPICH's, Open MPI 5 in a persistent PRRTE */
    {"SLURM_JOB_ID", "SLURM_STEP_ID"},
    {"PALS_APID", NULL},
    {"ALPS_APP_ID", NULL},
    {"FLUX_JOB_ID", NULL},
};

static const char slurm[] = "Slurm", hydra[] = "Hydra (mpiexec of MPICH)", open_mpi[] = "mpirun of Open MPI";

static long number_in(const char *variable)
{
    const char *value = getenv(variable);
    char *end = "";
    long number = value && *value ? strtol(value, &end, 10) : -1;
    return number < 0 || *end ? -1 : number;
}

/* What a launcher tells each process of those that it has started together. */
static void started_by(struct job *job, const char *launcher, const char *number, const char *started)
{
    long own = number_in(number), all = number_in(started);
    job->launcher = launcher;
    if (own >= 0 && own < all && all <= INT32_MAX) {
        job->number = (unsigned)own;
        job->started = (unsigned)all;
    }
}

static void started_by_slurm(struct job *job)
{
    started_by(job, slurm, "SLURM_PROCID", "SLURM_STEP_NUM_TASKS");
}

static int is_spawned(const char *variable)
{
    const char *value = getenv(variable);
    return value && *value && strcmp(value, "0") != 0;
}

/* Open MPI 2 to 4: the name space is a number, the launcher's in its upper half and the world's in its lower. Old runs
 * may have had the same, but not the same random number beside it, which spawned processes inherit. */
static int job_of_orte(struct job *job)
{
    const char *space = getenv("PMIX_NAMESPACE"), *random = getenv("OMPI_MCA_orte_precondition_transports");
    unsigned long number;
    char *end;
    if (!space || !random || (number = strtoul(space, &end, 10)) == 0 || *end)
        return 0;
    if (is_spawned("OMPI_PARENT_PORT") && (number & 0xffff) != 0) {
        job->world = number & 0xffff;
        number = (number & ~0xfffful) + 1;
    }
    snprintf(job->identity, sizeof job->identity, "%lu.%s", number, random);
    started_by(job, open_mpi, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE");
    return 1;
}

/* Open MPI 5: the name space is prterun-HOST-PID@WORLD. */
static int job_of_prterun(struct job *job)
{
    const char *space = getenv("PMIX_NAMESPACE"), *at = space ? strrchr(space, '@') : NULL;
    if (!at || strncmp(space, "prterun-", 8) != 0 || atoi(at + 1) < 1)
        return 0;
    job->world = (unsigned)atoi(at + 1);
    snprintf(job->identity, sizeof job->identity, "%.*s@1", (int)(at - space), space);
    started_by(job, open_mpi, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE");
    return 1;
}

/* Intel MPI: its Hydra tells all. */
static int job_of_intel(struct job *job)
{
    const char *launch = getenv("I_MPI_HYDRA_UUID"), *group = getenv("HYDRA_BSTRAP_PGID");
    if (!launch || !*launch || !group)
        return 0;
    job->world = (unsigned)atoi(group) + 1;
    snprintf(job->identity, sizeof job->identity, "%s", launch);
    started_by(job, "Intel MPI's mpiexec", "PMI_RANK", "PMI_SIZE");
    return 1;
}

/* What Hydra's proxy, our ancestor, was told: MPICH gives ranks no variable that names the job, but the launcher's own
 * address is the same for all of them. */
struct proxy {
    char port[128];
    int group;               /* the world, counted from 0: of the ranks that the proxy was started for */
};

static void read_arguments(struct proxy *proxy, const char *text, ssize_t length)
{
    for (ssize_t at = 0; at < length; at += (ssize_t)strlen(text + at) + 1) {
        ssize_t value = at + (ssize_t)strlen(text + at) + 1;
        if (value >= length)
            return;
        if (!strcmp(text + at, "--control-port") || !strcmp(text + at, "--upstream-port"))
            snprintf(proxy->port, sizeof proxy->port, "%s", text + value);
        else if (!strcmp(text + at, "--pgid"))
            proxy->group = atoi(text + value);
    }
}

static ssize_t read_process_file(long pid, const char *name, char *text, size_t bytes)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%ld/%s", pid, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = fd >= 0 ? read(fd, text, bytes - 1) : -1;
    if (fd >= 0)
        close(fd);
    text[length > 0 ? length : 0] = '\0';
    return length;
}

static int find_proxy(struct proxy *proxy)
{
    char text[4096];
    long pid = getppid();
    *proxy = (struct proxy){.group = 0};
    for (int up = 0; up < 8 && pid > 1; up++) {
        read_arguments(proxy, text, read_process_file(pid, "cmdline", text, sizeof text));
        if (*proxy->port)
            return up + 1;
        read_process_file(pid, "stat", text, sizeof text);
        const char *behind_name = strrchr(text, ')');
        if (!behind_name || sscanf(behind_name + 1, " %*c %ld", &pid) != 1)
            return 0;
    }
    return 0;
}

static void find_group_name(const char *memory, size_t bytes, int *group)
{
    static const char start[] = "kvs_";
    const char *at = memory, *end = memory + bytes;
    while ((at = memmem(at, (size_t)(end - at), start, strlen(start)))) {
        char name[64];
        int found;
        size_t left = (size_t)(end - at), length = left < sizeof name ? left : sizeof name - 1;
        memcpy(name, at, length);
        name[length] = '\0';
        if (sscanf(name, "kvs_%*[0-9]_%d", &found) == 1 && found > *group)
            *group = found;
        at += strlen(start);
    }
}

static int search_library(struct dl_phdr_info *info, size_t bytes, void *group)
{
    enum { LARGEST = 64 << 20 };
    (void)bytes;
    const char *slash = strrchr(info->dlpi_name, '/'), *name = slash ? slash + 1 : info->dlpi_name;
    if (strncmp(name, "libmpi", 6) != 0 && strncmp(name, "libpmi", 6) != 0)
        return 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        if (segment->p_type == PT_LOAD && segment->p_flags & PF_W && segment->p_memsz <= LARGEST)
            find_group_name((const char *)(info->dlpi_addr + segment->p_vaddr), segment->p_memsz, group);
    }
    return 0;
}

/* Newer Hydras start spawned processes from proxies that are there already, and tell only the MPI library which world
 * they are: kvs_PID_GROUP_.... Asking it costs messages, so what it remembers is looked up in its static data. It may
 * know its parents' name too, whose number is lower. -1: nothing found. */
static int group_in_library(void)
{
    int group = -1;
    dl_iterate_phdr(search_library, &group);
    return group;
}

static int job_of_hydra(struct job *job)
{
    struct proxy proxy;
    if (!find_proxy(&proxy))
        return 0;
    if (proxy.group == 0 && is_spawned("PMI_SPAWNED"))
        proxy.group = group_in_library();
    job->world = (unsigned)(proxy.group < 0 ? 0 : proxy.group) + 1;
    if (proxy.group < 0)
        snprintf(job->identity, sizeof job->identity, "%s.%ld", proxy.port, (long)getpid());
    else
        snprintf(job->identity, sizeof job->identity, "%s", proxy.port);
    started_by(job, hydra, "PMI_RANK", "PMI_SIZE");
    return 1;
}

int job_is(const struct job *job, const char *identity, const char *launch)
{
    return !strcmp(job->identity, identity) && (!*job->launch || !*launch || !strcmp(job->launch, launch));
}

/* The shell of an interactive allocation and a batch script are steps with numbers of their own: what is started there
 * without srun is no task of one step. */
static int is_step(const char *number)
{
    return strtoul(number, NULL, 10) < 0xfffffff0ul;
}

/* What Slurm tells of a step is inherited by all that is started within it, as by another launcher in `srun --pty bash`. A
 * proxy that is an ancestor is nearer: tasks are children of Slurm's own processes. */
static int is_in_step(void)
{
    const char *space = getenv("PMIX_NAMESPACE"), *step = getenv("SLURM_STEP_ID");
    return space && *space ? !strncmp(space, "slurm.", 6) : step && is_step(step);
}

static void find_identity(struct job *job)
{
    struct timespec now;
    if (job_of_orte(job) || job_of_prterun(job) || job_of_intel(job) || (is_in_step() && job_of_hydra(job)))
        return;
    for (size_t i = 0; i < sizeof job_variables / sizeof job_variables[0]; i++) {
        const char *first = getenv(job_variables[i][0]);
        const char *second = job_variables[i][1] ? getenv(job_variables[i][1]) : "";
        if (second && !strcmp(job_variables[i][0], "SLURM_JOB_ID") && !is_step(second))
            continue;
        if (first && *first && second) {
            snprintf(job->identity, sizeof job->identity, "%s%s%s", first, *second ? "." : "", second);
            if (is_in_step())
                started_by_slurm(job);
            return;
        }
    }
    if (job_of_hydra(job))
        return;
    clock_gettime(CLOCK_REALTIME, &now); /* no launcher: a job of one rank; pids alone are the same on many nodes */
    snprintf(job->identity, sizeof job->identity, "pid-%ld-%lld.%09ld", (long)getpid(), (long long)now.tv_sec, now.tv_nsec);
}

/* An MPI that does not understand Hydra makes a job of its own for each process and says so in the environment, so that nobody
 * seems to have started them together. Not of what a rank has started in turn, which inherits Hydra's variables. */
static int is_stranger_to_hydra(const struct job *job, int world_size)
{
    struct proxy proxy;
    return world_size == 1 && job->started <= 1 && number_in("PMI_SIZE") > 1 && find_proxy(&proxy) == 1;
}

void job_find(struct job *job, int world_size)
{
    const char *launch = getenv("LAPSCOPE_LAUNCH");
    *job = (struct job){.world = 1};
    snprintf(job->launch, sizeof job->launch, "%s", launch ? launch : "");
    find_identity(job);
    if (is_stranger_to_hydra(job, world_size))
        job_of_hydra(job);
    job->is_alone = world_size == 1 && job->world == 1 && job->started > 1;
    if (job->is_alone)
        job->world = job->number + 1;
}

static const char *cure(const struct job *job, const char *abi, const char *library)
{
    if (job->launcher != slurm)
        return !strcmp(abi, "openmpi")       ? "start the program with Open MPI's own mpirun"
               : strstr(library, "Intel")    ? "start the program with Intel MPI's own mpiexec"
               : !strcmp(abi, "mpich")       ? "start the program with MPICH's own mpiexec"
                                             : "start the program with the mpirun or mpiexec of the MPI that it is linked with";
    if (!strcmp(abi, "openmpi"))
        return "start it with srun --mpi=pmix, or with its own mpirun";
    if (strstr(library, "Intel"))
        return "start it with srun --mpi=pmi2 and I_MPI_PMI_LIBRARY naming Slurm's libpmi2.so, or with its own mpiexec";
    return "start it with srun --mpi=pmi2, or with its own mpiexec";
}

void job_say_alone(const struct job *job, const char *abi, const char *library)
{
    if (job->is_alone && job->number == 0)
        log_line("%s has started %u processes, but each is alone in its MPI_COMM_WORLD, as the MPI does not understand this "
                 "launcher (%.*s); unless that is meant, %s", job->launcher, job->started, (int)strcspn(library, ",\n"), library,
                 cure(job, abi, library));
}
