#define _GNU_SOURCE
#include "rundir.h"

#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { MAX_RUNS = 1000, MAX_LIVES = 1000 };

/* --- the job's identity, and which of its worlds this is ----------------------------------------------------------- */

/* Processes that MPI_Comm_spawn starts have a MPI_COMM_WORLD of their own, and belong to the job of their parents. The
 * launchers number the worlds of a job, in the order in which they start them: all ranks know their world's number
 * without being told. Where no number can be found, spawned processes are jobs of their own. */

/* Launchers that tell every rank something that only this job has, the most telling first. */
static const char *const job_variables[][2] = {
    {"PMIX_NAMESPACE", NULL}, /* PMIx without a launcher known below: Slurm's, MPICH's, Open MPI 5 in a persistent PRRTE */
    {"SLURM_JOB_ID", "SLURM_STEP_ID"},
    {"PALS_APID", NULL},
    {"ALPS_APP_ID", NULL},
    {"FLUX_JOB_ID", NULL},
};

static int is_spawned(const char *variable)
{
    const char *value = getenv(variable);
    return value && *value && strcmp(value, "0") != 0;
}

/* Open MPI 2 to 4: the name space is a number, the launcher's in its upper half and the world's in its lower. Old runs
 * may have had the same, but not the same random number beside it, which spawned processes inherit. */
static int job_of_orte(struct rundir *dir)
{
    const char *space = getenv("PMIX_NAMESPACE"), *random = getenv("OMPI_MCA_orte_precondition_transports");
    unsigned long number;
    char *end;
    if (!space || !random || (number = strtoul(space, &end, 10)) == 0 || *end)
        return 0;
    if (is_spawned("OMPI_PARENT_PORT") && (number & 0xffff) != 0) {
        dir->world = number & 0xffff;
        number = (number & ~0xfffful) + 1;
    }
    snprintf(dir->job, sizeof dir->job, "%lu.%s", number, random);
    return 1;
}

/* Open MPI 5: the name space is prterun-HOST-PID@WORLD. */
static int job_of_prterun(struct rundir *dir)
{
    const char *space = getenv("PMIX_NAMESPACE"), *at = space ? strrchr(space, '@') : NULL;
    if (!at || strncmp(space, "prterun-", 8) != 0 || atoi(at + 1) < 1)
        return 0;
    dir->world = (unsigned)atoi(at + 1);
    snprintf(dir->job, sizeof dir->job, "%.*s@1", (int)(at - space), space);
    return 1;
}

/* Intel MPI: its Hydra tells all. */
static int job_of_intel(struct rundir *dir)
{
    const char *job = getenv("I_MPI_HYDRA_UUID"), *group = getenv("HYDRA_BSTRAP_PGID");
    if (!job || !*job || !group)
        return 0;
    dir->world = (unsigned)atoi(group) + 1;
    snprintf(dir->job, sizeof dir->job, "%s", job);
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
            return 1;
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
 * they are: kvs_PID_GROUP_.... Asking it costs messages, so what it remembers is looked up in its static data. It may know
 * its parents' name too, whose number is lower. -1: nothing found. */
static int group_in_library(void)
{
    int group = -1;
    dl_iterate_phdr(search_library, &group);
    return group;
}

static int job_of_hydra(struct rundir *dir)
{
    struct proxy proxy;
    if (!find_proxy(&proxy))
        return 0;
    if (proxy.group == 0 && is_spawned("PMI_SPAWNED"))
        proxy.group = group_in_library();
    dir->world = (unsigned)(proxy.group < 0 ? 0 : proxy.group) + 1;
    if (proxy.group < 0)
        snprintf(dir->job, sizeof dir->job, "%s.%ld", proxy.port, (long)getpid());
    else
        snprintf(dir->job, sizeof dir->job, "%s", proxy.port);
    return 1;
}

static void find_job(struct rundir *dir)
{
    dir->world = 1;
    if (job_of_orte(dir) || job_of_prterun(dir) || job_of_intel(dir))
        return;
    for (size_t i = 0; i < sizeof job_variables / sizeof job_variables[0]; i++) {
        const char *first = getenv(job_variables[i][0]);
        const char *second = job_variables[i][1] ? getenv(job_variables[i][1]) : "";
        if (first && *first && second) {
            snprintf(dir->job, sizeof dir->job, "%s%s%s", first, *second ? "." : "", second);
            return;
        }
    }
    if (!job_of_hydra(dir)) /* no launcher: a job of one rank */
        snprintf(dir->job, sizeof dir->job, "pid-%ld-%lld", (long)getpid(), (long long)time(NULL));
}

/* A file name of it: at most 24 characters that need no quoting. */
static void job_as_name(const char *job, char *name, size_t bytes)
{
    size_t used = 0;
    for (; *job && used + 1 < bytes && used < 24; job++)
        name[used++] = strchr("/ \t\n:*?'\"$&;<>|()[]{}\\", *job) ? '-' : *job;
    name[used] = '\0';
}

/* --- claiming a directory ----------------------------------------------------------------------------------------- */

static int make_parents(char *path)
{
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        int failed = mkdir(path, 0777) != 0 && errno != EEXIST;
        *slash = '/';
        if (failed)
            return errno;
    }
    return 0;
}

/* Ours to write into: a directory that this user owns, not reached through a link in its last part. */
static int check_owner(const char *path)
{
    struct stat facts;
    if (lstat(path, &facts) != 0)
        return errno;
    if (S_ISLNK(facts.st_mode) && facts.st_uid != geteuid())
        return EPERM;
    if (stat(path, &facts) != 0)
        return errno;
    return !S_ISDIR(facts.st_mode) ? ENOTDIR : facts.st_uid != geteuid() ? EPERM : 0;
}

/* Reads whose job a directory is; 0 when nobody has claimed it. */
static int read_claim(const char *path, char *job, size_t bytes)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    ssize_t length = fd >= 0 ? read(fd, job, bytes - 1) : -1;
    if (fd >= 0)
        close(fd);
    job[length > 0 ? length : 0] = '\0';
    return length > 0;
}

/* Claims a directory for `job`, or finds that it is this job's already: 0. EEXIST: another job's. All ranks of a job
 * come here at once: the claim appears whole, by link(). */
static int claim(const char *directory, const char *job)
{
    char path[RUNDIR_PATH_BYTES + 32], ours[RUNDIR_PATH_BYTES + 64], owner[256];
    snprintf(path, sizeof path, "%s/job", directory);
    if (read_claim(path, owner, sizeof owner))
        return strcmp(owner, job) ? EEXIST : 0;
    snprintf(ours, sizeof ours, "%s/.job.%ld", directory, (long)getpid());
    int fd = open(ours, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return errno;
    size_t length = strlen(job);
    int error = write(fd, job, length) == (ssize_t)length ? 0 : errno ? errno : ENOSPC;
    close(fd);
    if (!error && link(ours, path) != 0)
        error = errno;
    unlink(ours);
    if (error != EEXIST)
        return error;
    return read_claim(path, owner, sizeof owner) && !strcmp(owner, job) ? 0 : EEXIST;
}

static int open_directory(struct rundir *dir, const char *wanted)
{
    int error = EEXIST;
    for (int run = 1; run <= MAX_RUNS && error == EEXIST; run++) {
        int length = run == 1 ? snprintf(dir->path, sizeof dir->path, "%s", wanted)
                              : snprintf(dir->path, sizeof dir->path, "%s-%d", wanted, run);
        if (length >= (int)sizeof dir->path - 64)
            return ENAMETOOLONG;
        error = make_parents(dir->path);
        if (!error && mkdir(dir->path, 0700) != 0 && errno != EEXIST)
            error = errno;
        if (!error)
            error = check_owner(dir->path);
        if (!error)
            error = claim(dir->path, dir->job);
    }
    return error;
}

/* The names of this rank's files. A rank that was here before (it has called exec) gets another life. */
static void name_files(struct rundir *dir, int rank)
{
    const char *at = *config.spool_dir ? config.spool_dir : dir->path;
    char name[96], world[32] = "", life[16] = "", job[32];
    job_as_name(dir->job, job, sizeof job);
    if (dir->world > 1)
        snprintf(world, sizeof world, "world-%u-", dir->world);
    for (dir->life = 1; dir->life < MAX_LIVES; dir->life++) {
        if (dir->life > 1)
            snprintf(life, sizeof life, "-%u", dir->life);
        snprintf(name, sizeof name, "%srank-%d%s", world, rank, life);
        snprintf(dir->database, sizeof dir->database, "%.3900s/%s.db", dir->path, name);
        if (*config.spool_dir)
            snprintf(dir->spool, sizeof dir->spool, "%.3900s/lapscope-%s-%s.spool", at, job, name);
        else
            snprintf(dir->spool, sizeof dir->spool, "%.3900s/%s.spool", at, name);
        if (access(dir->database, F_OK) != 0 && access(dir->spool, F_OK) != 0)
            return;
    }
}

int rundir_open(struct rundir *dir, int rank, char *error, size_t error_bytes)
{
    char wanted[RUNDIR_PATH_BYTES], name[32], here[RUNDIR_PATH_BYTES / 2] = "";
    find_job(dir);
    job_as_name(dir->job, name, sizeof name);
    if (*config.dir != '/' && !getcwd(here, sizeof here)) {
        snprintf(error, error_bytes, "the working directory cannot be named (%s)", strerror(errno));
        return errno;
    }
    const char *slash = *here ? "/" : "";
    if (*config.dir)
        snprintf(wanted, sizeof wanted, "%s%s%.1900s", here, slash, config.dir);
    else
        snprintf(wanted, sizeof wanted, "%s%slapscope-%s", here, slash, name);
    int code = open_directory(dir, wanted);
    if (code)
        snprintf(error, error_bytes, "the run directory %s cannot be used (%s); name another with LAPSCOPE_DIR", wanted,
                 code == EPERM ? "it belongs to another user" : strerror(code));
    else
        name_files(dir, rank);
    return code;
}
