#define _GNU_SOURCE
#include "rundir.h"

#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_RUNS = 1000, MAX_LIVES = 1000 };

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
            error = claim(dir->path, dir->job.identity);
    }
    return error;
}

/* The names of this rank's files. A rank that was here before (it has called exec) gets another life. */
static void name_files(struct rundir *dir, int rank)
{
    const char *at = *config.spool_dir ? config.spool_dir : dir->path;
    char name[96], world[32] = "", life[16] = "", job[32];
    job_as_name(dir->job.identity, job, sizeof job);
    if (dir->job.world > 1)
        snprintf(world, sizeof world, "world-%u-", dir->job.world);
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
    job_find(&dir->job);
    job_as_name(dir->job.identity, name, sizeof name);
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
