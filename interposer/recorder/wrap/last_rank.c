/*
 * Which rank is the last? Each holds the lock of the directory for as long as it takes to look: when its own spool says
 * that it has ended and every other one says so too, or is of a process that is dead, nobody comes behind it who would see
 * that. The lock is the kernel's (flock), so that a rank that is killed with it lets it go; what it has not done is left
 * to `lapscope run` or `lapscope recover`, which hold the same lock.
 *
 * A shared counter of those that have ended would be wrong after the first killed rank. One rank reads every spool and
 * writes every row once. Ranks that appended theirs one after the other would take as long altogether, as a file has
 * one writer, and all would wait where now all but one have gone; databases of ranks, merged afterwards, cost every row
 * twice. The price is that one processor does the work of the node's; LAPSCOPE_CONVERT=off puts it off.
 */
#define _GNU_SOURCE
#include "last_rank.h"

#include "../base/log.h"
#include "../base/process.h"
#include "../store/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

struct spools {
    struct store_spool *all;
    char (*names)[64];
    size_t count, room;
};

static int is_spool(const char *name)
{
    const char *dot = strchr(name, '.');
    return dot && !strcmp(dot, ".spool") && strlen(name) < sizeof *((struct spools *)0)->names;
}

/* Whether the rank of a spool may still write into it. */
static int goes_on(const char *path)
{
    struct spool_info info;
    char error[1024], boot_id[40];
    if (spool_inspect(path, &info, error, sizeof error) != 0)
        return 1; /* it has just been made, or is damaged: not for us to say */
    if (info.end != SPOOL_OPEN)
        return 0;
    process_boot(boot_id, sizeof boot_id);
    if (strcmp(boot_id, info.boot_id) != 0 || info.pid_namespace != process_namespace())
        return 1;
    return !process_has_gone((long)info.pid, info.pid_start);
}

static int add(struct spools *spools, const char *name)
{
    if (spools->count == spools->room) {
        size_t room = spools->room ? 2 * spools->room : 64;
        void *grown = realloc(spools->names, room * sizeof *spools->names);
        if (!grown)
            return 0;
        spools->names = grown;
        spools->room = room;
    }
    strcpy(spools->names[spools->count++], name);
    return 1;
}

static void path_of(const struct nodedir *node, const char *name, char *path, size_t bytes)
{
    snprintf(path, bytes, "%.4000s/%s", node->path, name);
}

/* The spools of the node; none while a rank of it goes on. */
static void find_spools(const struct nodedir *node, struct spools *spools)
{
    char path[NODEDIR_PATH_BYTES + 80];
    DIR *directory = opendir(node->path);
    struct dirent *entry;
    int is_last = directory != NULL;
    while (is_last && (entry = readdir(directory))) {
        if (!is_spool(entry->d_name))
            continue;
        path_of(node, entry->d_name, path, sizeof path);
        is_last = !goes_on(path) && add(spools, entry->d_name);
    }
    if (directory)
        closedir(directory);
    if (!is_last)
        spools->count = 0;
}

/* "rank-9" before "rank-10", and both before further lives and other worlds: as store_convert_all() wants them. */
static int compare(const void *one, const void *other)
{
    const char *const names[] = {one, other};
    long rank[2] = {0};
    int is_further[2];
    for (int i = 0; i < 2; i++) {
        int length = 0;
        is_further[i] = sscanf(names[i], "rank-%ld.spool%n", &rank[i], &length) != 1 || length == 0;
    }
    if (is_further[0] != is_further[1])
        return is_further[0] - is_further[1];
    if (rank[0] != rank[1])
        return rank[0] < rank[1] ? -1 : 1;
    return strcmp(names[0], names[1]);
}

static void say(const struct nodedir *node, const struct spools *spools)
{
    unsigned long long requests = 0, calls = 0, lost = 0;
    const struct store_result *zero = NULL;
    for (size_t i = 0; i < spools->count; i++) {
        const struct store_result *result = &spools->all[i].result;
        requests += result->requests;
        calls += result->calls;
        lost += result->lost;
        if (!*spools->all[i].error && result->rank == 0 && result->world == 1)
            zero = result;
    }
    if (zero)
        log_line("data in %s; %zu ranks of %s: %llu requests, %llu calls, %llu lost; next: lapscope report %s", node->run,
                 spools->count, node->host, requests, calls, lost, node->run);
}

static void convert(struct nodedir *node, struct spools *spools, int quiet)
{
    char error[2 * NODEDIR_PATH_BYTES + 600] = "";
    if (nodedir_point(node) != 0 || /* the name may have been taken since */
        store_convert_all(spools->all, spools->count, node->database, NULL, NULL, error, sizeof error) != 0) {
        log_line("%s of the ranks of %s could not be made: %s. Nothing is lost: the spools stay in %s, and there `lapscope "
                 "recover %s` converts them later", node->database, node->host, error, node->path, node->run);
        return;
    }
    for (size_t i = 0; i < spools->count; i++)
        if (*spools->all[i].error)
            log_line("%s. It stays, and is not in %s", spools->all[i].error, node->database);
        else
            unlink(spools->all[i].path);
    nodedir_leave(node);
    if (!quiet)
        say(node, spools);
}

static void convert_found(struct nodedir *node, struct spools *spools, int quiet)
{
    char (*paths)[NODEDIR_PATH_BYTES + 80] = calloc(spools->count, sizeof *paths);
    spools->all = calloc(spools->count, sizeof *spools->all);
    if (paths && spools->all) {
        qsort(spools->names, spools->count, sizeof *spools->names, compare);
        for (size_t i = 0; i < spools->count; i++) {
            path_of(node, spools->names[i], paths[i], sizeof paths[i]);
            spools->all[i].path = paths[i];
        }
        convert(node, spools, quiet);
    }
    free(paths);
    free(spools->all);
}

void last_rank_convert(struct nodedir *node, int quiet)
{
    struct spools spools = {0};
    int fd = open(node->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), locked = -1;
    if (fd < 0) /* another was behind us, and has done it */
        return;
    do
        locked = flock(fd, LOCK_EX);
    while (locked != 0 && errno == EINTR);
    if (locked == 0)
        find_spools(node, &spools);
    else
        log_line("%s cannot be locked (%s): its spools stay, and there `lapscope recover %s` makes a database of them",
                 node->path, strerror(errno), node->run);
    if (spools.count)
        convert_found(node, &spools, quiet);
    free(spools.names);
    close(fd);
}
