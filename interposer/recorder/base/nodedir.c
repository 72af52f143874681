#define _GNU_SOURCE
#include "nodedir.h"

#include "config.h"
#include "process.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LONGEST_STORAGE = 3700, MOST_DATABASES = 1000 };

/* Not /dev/shm: that is the memory which the program may need. */
static const char *storage(void)
{
    const char *temporary = getenv("TMPDIR");
    if (*config.spool_dir)
        return config.spool_dir;
    return temporary && *temporary == '/' ? temporary : "/tmp";
}

static uint64_t hash_in(uint64_t hash, const void *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) /* FNV-1a */
        hash = (hash ^ ((const unsigned char *)bytes)[i]) * 1099511628211u;
    return hash;
}

/* Of all that tells this directory from others of the same user: job, run directory, node, and storage, which containers of
 * a node may have of their own. */
static uint64_t identity(const struct nodedir *node, const struct job *job, const char *base)
{
    struct stat facts = {0};
    char boot_id[40];
    process_boot(boot_id, sizeof boot_id);
    const char *const texts[] = {job->identity, job->launch, node->run, node->host, boot_id};
    uint64_t hash = 14695981039346656037u;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        hash = hash_in(hash, texts[i], strlen(texts[i]) + 1);
    if (stat(base, &facts) == 0) {
        hash = hash_in(hash, &facts.st_dev, sizeof facts.st_dev);
        hash = hash_in(hash, &facts.st_ino, sizeof facts.st_ino);
    }
    char claim[NODEDIR_PATH_BYTES + 8];
    snprintf(claim, sizeof claim, "%s/job", node->run);
    if (stat(claim, &facts) == 0) /* of the same name, but of an earlier run, whose spools may still be there */
        hash = hash_in(hash, &facts.st_ino, sizeof facts.st_ino);
    return hash;
}

/* As a part of a file's name. */
static void find_host(char *host, size_t bytes)
{
    *host = '\0';
    gethostname(host, bytes - 1);
    host[bytes - 1] = '\0';
    for (char *at = host; *at; at++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._", *at))
            *at = '-';
    if (!*host)
        snprintf(host, bytes, "unknown");
}

/* A directory of this user's alone: /tmp is everybody's. */
static int make_private(const char *path)
{
    struct stat facts;
    if (mkdir(path, 0700) != 0 && errno != EEXIST)
        return errno;
    if (lstat(path, &facts) != 0)
        return errno;
    return !S_ISDIR(facts.st_mode) ? ENOTDIR : facts.st_uid != geteuid() || facts.st_mode & 077 ? EPERM : 0;
}

int nodedir_open(struct nodedir *node, const char *run, const struct job *job)
{
    char here[NODEDIR_PATH_BYTES] = "", base[NODEDIR_PATH_BYTES];
    const char *named = storage();
    *node = (struct nodedir){.run = run};
    find_host(node->host, sizeof node->host);
    snprintf(node->path, sizeof node->path, "%.*s", LONGEST_STORAGE, named);
    if (*named != '/' && !process_directory(here, sizeof here))
        return errno;
    if (snprintf(base, sizeof base, "%s%s%s", here, *here ? "/" : "", named) >= LONGEST_STORAGE)
        return ENAMETOOLONG;
    unsigned long long number = identity(node, job, base);
    snprintf(node->path, sizeof node->path, "%.*s/lapscope-%016llx-%.64s", LONGEST_STORAGE, base, number, node->host);
    int error = make_private(node->path);
    return error ? error : nodedir_point(node);
}

/* --- the pointer -------------------------------------------------------------------------------------------------- */

static void name_files(struct nodedir *node, unsigned number)
{
    char behind[16] = "";
    if (number > 1)
        snprintf(behind, sizeof behind, "+%u", number);
    snprintf(node->pointer, sizeof node->pointer, "%.3999s/node-%s%s.spool-at", node->run, node->host, behind);
    snprintf(node->database, sizeof node->database, "%.3999s/node-%s%s.db", node->run, node->host, behind);
}

/* Whether a pointer is there that says `text`: 1; 0: none; -1: another. */
static int points(const char *pointer, const char *text)
{
    char found[NODEDIR_PATH_BYTES + 300];
    int fd = open(pointer, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return errno == ENOENT ? 0 : -1;
    ssize_t length = read(fd, found, sizeof found - 1);
    close(fd);
    found[length > 0 ? length : 0] = '\0';
    return strcmp(found, text) == 0 ? 1 : -1;
}

/* Appears whole, by link(): all ranks of a node come here at once. */
static int make_pointer(const struct nodedir *node, const char *text)
{
    char ours[NODEDIR_PATH_BYTES + 400];
    snprintf(ours, sizeof ours, "%.3999s/.node-%s.%ld", node->run, node->host, (long)getpid());
    unlink(ours); /* of an earlier process of that pid, which was killed here */
    int fd = open(ours, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return errno;
    size_t length = strlen(text);
    int error = write(fd, text, length) == (ssize_t)length ? 0 : ENOSPC;
    close(fd);
    if (!error && link(ours, node->pointer) != 0)
        error = errno;
    unlink(ours);
    return error;
}

int nodedir_point(struct nodedir *node)
{
    char text[NODEDIR_PATH_BYTES + 300];
    snprintf(text, sizeof text, "%s\t%s\n", node->host, node->path);
    node->databases = 0;
    for (unsigned number = 1; number <= MOST_DATABASES; number++) {
        name_files(node, number);
        if (access(node->database, F_OK) == 0) {
            node->databases++;
            continue;
        }
        int found = points(node->pointer, text);
        if (found == 0) {
            int error = make_pointer(node, text);
            if (error && error != EEXIST)
                return error;
            found = error ? points(node->pointer, text) : 1;
        }
        if (found == 1)
            return 0;
    }
    return EEXIST;
}

void nodedir_leave(struct nodedir *node)
{
    unlink(node->pointer);
    if (rmdir(node->path) != 0 && (errno == ENOTEMPTY || errno == EEXIST))
        nodedir_point(node); /* somebody has come meanwhile, or a spool stays */
}
