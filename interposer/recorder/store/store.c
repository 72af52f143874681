#define _GNU_SOURCE
#include "store.h"

#include "conversion.h"
#include "tables.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Makes the database's file ourselves: private, and never through somebody's link. Returns 0 or an errno value. */
static int create_private(const char *path)
{
    unlink(path); /* what an earlier conversion left half done */
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return errno;
    close(fd);
    return 0;
}

/* Of what a spool's header says. */
static void describe(struct store_result *result, const struct spool_file_header *header)
{
    *result = (struct store_result){.rank = header->rank, .life = header->life, .world = header->world};
}

/* Returns how many spools are in the database, or -1 when out of memory. A spool that cannot be read says why. */
static int take_all(struct store_tables *tables, struct store_spool *spools, size_t count, struct conversion_progress *progress)
{
    int taken = 0;
    for (size_t i = 0; i < count && !tables->failed; i++) {
        struct spool_file file;
        struct store_spool *spool = &spools[i];
        *spool->error = '\0';
        spool->result = (struct store_result){0};
        if (spool_file_open(&file, spool->path, spool->error, sizeof spool->error) != 0)
            continue;
        describe(&spool->result, file.header);
        progress->end_bytes = progress->done_bytes + file.bytes;
        int failed = conversion_of(tables, &file, &spool->result, progress);
        progress->done_bytes = progress->end_bytes;
        spool_file_close(&file);
        if (failed)
            return -1;
        taken++;
    }
    return taken;
}

static uint64_t bytes_of(const struct store_spool *spools, size_t count)
{
    struct stat facts;
    uint64_t bytes = 0;
    for (size_t i = 0; i < count; i++)
        bytes += stat(spools[i].path, &facts) == 0 ? (uint64_t)facts.st_size : 0;
    return bytes;
}

/* Fills the file `part`, which is there and empty. */
static int fill(const char *part, struct store_spool *spools, size_t count, struct conversion_progress *progress, char *error,
                size_t error_bytes)
{
    struct store_tables tables;
    store_tables_open(&tables, part);
    int taken = take_all(&tables, spools, count, progress);
    if (store_tables_close(&tables, part, error, error_bytes) != 0)
        return -1;
    if (taken < 0)
        snprintf(error, error_bytes, "%s cannot be made (out of memory): convert it where there is more", part);
    else if (taken == 0)
        snprintf(error, error_bytes, "%s", count ? spools[0].error : "there is no spool");
    return taken > 0 ? 0 : -1;
}

int store_convert_all(struct store_spool *spools, size_t count, const char *database_path, store_progress *progress,
                      void *context, char *error, size_t error_bytes)
{
    char part[4096];
    if (snprintf(part, sizeof part, "%s.part", database_path) >= (int)sizeof part) {
        snprintf(error, error_bytes, "the path of the database is too long: %s", database_path);
        return -1;
    }
    int code = create_private(part);
    if (code) {
        snprintf(error, error_bytes, "%s cannot be made (%s): its directory has to exist and be writable", part,
                 strerror(code));
        return -1;
    }
    struct conversion_progress all = {.tell = progress, .context = context, .total_bytes = bytes_of(spools, count)};
    int failed = fill(part, spools, count, &all, error, error_bytes);
    if (!failed && rename(part, database_path) != 0) {
        snprintf(error, error_bytes, "%s cannot be renamed to %s (%s)", part, database_path, strerror(errno));
        failed = -1;
    }
    if (failed)
        unlink(part);
    return failed;
}

int store_convert(const char *spool_path, const char *database_path, store_progress *progress, void *context,
                  struct store_result *result, char *error, size_t error_bytes)
{
    struct store_spool spool = {.path = spool_path};
    int failed = store_convert_all(&spool, 1, database_path, progress, context, error, error_bytes);
    *result = spool.result;
    return failed;
}
