#define _GNU_SOURCE
#include "rundir.h"

#include "config.h"
#include "log.h"
#include "process.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { MAX_RUNS = 1000, MAX_LIVES = 1000, LONGEST_DIRECTORY = 3900 }; /* names of files stand behind it */

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

/* Reads whose a directory is: the job's identity and, on a second line, its launch. 0 when nobody has claimed it. */
static int read_claim(const char *path, struct job *owner)
{
    char text[sizeof owner->identity + sizeof owner->launch];
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    ssize_t length = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
    if (fd >= 0)
        close(fd);
    text[length > 0 ? length : 0] = '\0';
    char *line_end = strchr(text, '\n');
    snprintf(owner->launch, sizeof owner->launch, "%s", line_end ? line_end + 1 : "");
    if (line_end)
        *line_end = '\0';
    snprintf(owner->identity, sizeof owner->identity, "%.255s", text);
    return length > 0;
}

/* Claims a directory for `job`, or finds that it is this job's already: 0. EEXIST: another job's. All ranks of a job
 * come here at once: the claim appears whole, by link(). */
static int claim(const char *directory, const struct job *job)
{
    char path[RUNDIR_PATH_BYTES + 32], ours[RUNDIR_PATH_BYTES + 64], text[sizeof job->identity + sizeof job->launch];
    struct job owner;
    snprintf(path, sizeof path, "%s/job", directory);
    if (read_claim(path, &owner))
        return job_is(job, owner.identity, owner.launch) ? 0 : EEXIST;
    struct timespec now; /* pids alone are not enough: other nodes have the same */
    clock_gettime(CLOCK_REALTIME, &now);
    snprintf(ours, sizeof ours, "%s/.job.%ld.%ld", directory, (long)getpid(), now.tv_nsec);
    int fd = open(ours, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return errno;
    size_t length = (size_t)snprintf(text, sizeof text, "%s%s%s", job->identity, *job->launch ? "\n" : "", job->launch);
    int error = write(fd, text, length) == (ssize_t)length ? 0 : errno ? errno : ENOSPC;
    close(fd);
    if (!error && link(ours, path) != 0)
        error = errno;
    unlink(ours);
    if (error != EEXIST)
        return error;
    return read_claim(path, &owner) && job_is(job, owner.identity, owner.launch) ? 0 : EEXIST;
}

static int open_directory(struct rundir *dir, const char *wanted)
{
    int error = EEXIST;
    for (int run = 1; run <= MAX_RUNS && error == EEXIST; run++) {
        int length = run == 1 ? snprintf(dir->path, sizeof dir->path, "%s", wanted)
                              : snprintf(dir->path, sizeof dir->path, "%s-%d", wanted, run);
        if (length >= LONGEST_DIRECTORY)
            return ENAMETOOLONG;
        error = make_parents(dir->path);
        if (!error && mkdir(dir->path, 0700) != 0 && errno != EEXIST)
            error = errno;
        if (!error)
            error = check_owner(dir->path);
        if (!error)
            error = claim(dir->path, &dir->job);
    }
    return error;
}

/* Of a job, for names that are cut off: FNV-1a. */
static uint32_t hash_of(const struct job *job)
{
    uint32_t hash = 2166136261u;
    for (const char *at = job->identity; *at; at++)
        hash = (hash ^ (unsigned char)*at) * 16777619u;
    for (const char *at = job->launch; *at; at++)
        hash = (hash ^ (unsigned char)*at) * 16777619u;
    return hash;
}

/* The names of this rank's files. A rank that was here before (it has called exec) gets another life. */
static void name_files(struct rundir *dir, int rank)
{
    int is_elsewhere = *config.spool_dir && !dir->by_node;
    const char *at = dir->by_node ? dir->node.path : *config.spool_dir ? config.spool_dir : dir->path;
    char name[96], world[32] = "", life[16] = "", job[32];
    job_as_name(dir->job.identity, job, sizeof job);
    if (dir->job.world > 1)
        snprintf(world, sizeof world, "world-%u-", dir->job.world);
    /* where the databases of earlier lives are one a node, they tell no ranks by their names */
    for (dir->life = dir->by_node ? dir->node.databases + 1 : 1; dir->life < MAX_LIVES; dir->life++) {
        if (dir->life > 1)
            snprintf(life, sizeof life, "-%u", dir->life);
        snprintf(name, sizeof name, "%srank-%d%s", world, rank, life);
        snprintf(dir->database, sizeof dir->database, "%.3899s/%s.db", dir->path, name);
        if (is_elsewhere)
            snprintf(dir->spool, sizeof dir->spool, "%.3899s/lapscope-%s-%08x-%s.spool", at, job, hash_of(&dir->job), name);
        else
            snprintf(dir->spool, sizeof dir->spool, "%.3899s/%s.spool", at, name);
        if (access(dir->database, F_OK) != 0 && access(dir->spool, F_OK) != 0)
            return;
    }
}

static void say_without_node(const struct rundir *dir, int code)
{
    if (log_first_on_node())
        log_line("LAPSCOPE_FILES=node: %s cannot be used (%s), so each rank has its files in %s; LAPSCOPE_SPOOL_DIR can name "
                 "another place", dir->node.path, strerror(code), dir->path);
}

/* On the node's own storage, where that is asked for and can be. */
static void join_node(struct rundir *dir)
{
    if (config.files != CONFIG_FILES_NODE)
        return;
    int code = nodedir_open(&dir->node, dir->path, &dir->job);
    dir->by_node = !code;
    if (code)
        say_without_node(dir, code);
}

void rundir_leave_node(struct rundir *dir, int rank, int code)
{
    if (code == ENOENT) /* the last of the ranks before us has removed it meanwhile */
        code = nodedir_open(&dir->node, dir->path, &dir->job);
    else
        nodedir_leave(&dir->node);
    dir->by_node = !code;
    if (code)
        say_without_node(dir, code);
    name_files(dir, rank);
}

/* LAPSCOPE_DIR with the job's name for each %j, or the default. Returns the length it would have. */
static int name_directory(char *name, size_t bytes, const char *job)
{
    if (!*config.dir)
        return snprintf(name, bytes, "lapscope-%s", job);
    int length = 0;
    for (const char *at = config.dir; *at && length < LONGEST_DIRECTORY; at++) {
        int is_job = at[0] == '%' && at[1] == 'j';
        length += is_job ? snprintf(name + length, bytes - (size_t)length, "%s", job)
                         : snprintf(name + length, bytes - (size_t)length, "%c", *at);
        at += is_job;
    }
    return length;
}

int rundir_make(struct rundir *dir, int world_size, char *error, size_t error_bytes)
{
    char wanted[2 * RUNDIR_PATH_BYTES], named[RUNDIR_PATH_BYTES], name[32], here[RUNDIR_PATH_BYTES] = "";
    job_find(&dir->job, world_size);
    job_as_name(dir->job.identity, name, sizeof name);
    if (*config.dir != '/' && !process_directory(here, sizeof here)) {
        snprintf(error, error_bytes, "the working directory cannot be named (%s)", strerror(errno));
        return errno;
    }
    int is_short = name_directory(named, sizeof named, name) < LONGEST_DIRECTORY;
    int length = snprintf(wanted, sizeof wanted, "%s%s%s", here, *here ? "/" : "", is_short ? named : config.dir);
    int code = length < LONGEST_DIRECTORY && strlen(config.spool_dir) < LONGEST_DIRECTORY ? open_directory(dir, wanted)
                                                                                          : ENAMETOOLONG;
    if (code)
        snprintf(error, error_bytes, "the run directory %s cannot be used (%s); name another with lapscope run --dir, or LAPSCOPE_DIR", wanted,
                 code == EPERM ? "it belongs to another user" : strerror(code));
    return code;
}

int rundir_open(struct rundir *dir, int rank, int world_size, char *error, size_t error_bytes)
{
    int code = rundir_make(dir, world_size, error, error_bytes);
    if (!code) {
        join_node(dir);
        name_files(dir, rank);
    }
    return code;
}
