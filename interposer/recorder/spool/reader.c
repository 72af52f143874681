#define _GNU_SOURCE
#include "reader.h"

#include "codec.h"
#include "definitions.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- the file ----------------------------------------------------------------------------------------------------- */

static int complain(char *error, size_t error_bytes, const char *path, const char *what, int code)
{
    if (code)
        snprintf(error, error_bytes, "%s %s (%s)", path, what, strerror(code));
    else
        snprintf(error, error_bytes, "%s %s", path, what);
    return -1;
}

/* What is wrong with a header; NULL when nothing is. */
static const char *header_trouble(const struct spool_file_header *header)
{
    if (memcmp(header->magic, SPOOL_MAGIC, sizeof header->magic) != 0)
        return "is not a lapscope spool: its first 8 bytes are not " SPOOL_MAGIC;
    if (header->version != SPOOL_VERSION)
        return "was written by another version of lapscope: convert it with that version";
    if (header->header_bytes != SPOOL_HEADER_BYTES || header->rank < 0 || header->rank >= header->world_size ||
        header->world - 1u >= INT32_MAX || header->life - 1u >= INT32_MAX ||
        (uint64_t)header->first.monotonic_ns > SPOOL_LATEST_EPOCH_NS || (uint64_t)header->epoch_unix_ns > SPOOL_LATEST_EPOCH_NS ||
        header->lost_records > SPOOL_MOST || header->unknown_requests > SPOOL_MOST)
        return "has a damaged header (bytes 0 to 4095): nothing can be read from it";
    return NULL;
}

/* What succeeds leaves file->fd open. */
static int map_file(struct spool_file *file, const char *path, char *error, size_t error_bytes)
{
    struct stat facts;
    *file = (struct spool_file){0};
    /* What a name is of is known when it is open; a FIFO without a writer must not be waited for until then. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return complain(error, error_bytes, path, "cannot be opened", errno);
    int code = fstat(fd, &facts) != 0 ? errno : 0;
    if (!code && !S_ISREG(facts.st_mode)) {
        close(fd);
        return complain(error, error_bytes, path, "cannot be read: it is not a regular file, and so no spool", 0);
    }
    void *mapped = MAP_FAILED;
    if (!code && facts.st_size >= (off_t)SPOOL_HEADER_BYTES) {
        mapped = mmap(NULL, (size_t)facts.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        code = mapped == MAP_FAILED ? errno : 0;
    }
    if (mapped == MAP_FAILED)
        close(fd);
    if (code)
        return complain(error, error_bytes, path, "cannot be read", code);
    if (mapped == MAP_FAILED)
        return complain(error, error_bytes, path,
                        "is shorter than a spool's header: it was cut off before anything was recorded, and can be "
                        "deleted", 0);
    file->fd = fd;
    file->data = mapped;
    file->header = mapped;
    file->bytes = (size_t)facts.st_size;
    const char *trouble = header_trouble(file->header);
    if (!trouble)
        return 0;
    close(fd);
    spool_file_close(file);
    return complain(error, error_bytes, path, trouble, 0);
}

void spool_file_close(struct spool_file *file)
{
    if (file->data)
        munmap((void *)(uintptr_t)file->data, file->bytes);
    free(file->parts);
    file->data = NULL;
    file->parts = NULL;
}

void spool_file_damaged(struct spool_file *file, const void *at)
{
    if (file->damaged++ == 0)
        file->damaged_at = (uint64_t)((const unsigned char *)at - file->data);
}

/* --- chunks ------------------------------------------------------------------------------------------------------- */

/* The chunk whose header stands at `at`; returns the offset behind it, 0 when there is no valid header. */
static size_t read_chunk(struct spool_file *file, size_t at, struct spool_part *part)
{
    struct spool_chunk head;
    memcpy(&head, file->data + at, sizeof head);
    if (head.magic != SPOOL_CHUNK_MAGIC || head.bytes < SPOOL_CHUNK_ALIGN || head.bytes % SPOOL_CHUNK_ALIGN ||
        (head.kind != SPOOL_CHUNK_STREAM && head.bytes > SPOOL_MOST_ENTRIES_BYTES))
        return 0;
    const unsigned char *data = file->data + at + sizeof head;
    size_t there = file->bytes - at - sizeof head, room = (size_t)head.bytes - sizeof head;
    int cut = room > there;
    room = cut ? there : room;
    if (head.kind == SPOOL_CHUNK_STREAM ? head.used > room : cut)
        spool_file_damaged(file, cut ? file->data + file->bytes : file->data + at);
    *part = (struct spool_part){.data = data,
                                .bytes = head.kind == SPOOL_CHUNK_STREAM && head.used < room ? (size_t)head.used : room,
                                .room = room,
                                .base = head.base,
                                .kind = head.kind,
                                .thread = head.thread,
                                .has_state = head.has_state == 1};
    return cut ? file->bytes : at + (size_t)head.bytes;
}

static int is_unused(const struct spool_file *file, size_t at)
{
    uint32_t magic;
    memcpy(&magic, file->data + at, sizeof magic);
    return magic == 0; /* reserved, and killed before it was taken into use */
}

/* The next place where a chunk may begin: a file may be longer than its disk, and nothing is looked for in its holes. */
static size_t next_place(const struct spool_file *file, size_t at)
{
    size_t next = at + SPOOL_CHUNK_ALIGN;
    off_t written = is_unused(file, at) ? lseek(file->fd, (off_t)next, SEEK_DATA) : (off_t)next;
    if (written < 0)
        return errno == ENXIO ? file->bytes : next;
    return next + ((size_t)written - next) / SPOOL_CHUNK_ALIGN * SPOOL_CHUNK_ALIGN;
}

static struct spool_part *next_part(struct spool_file *file, size_t *room)
{
    if (file->part_count == *room) {
        size_t more = *room ? 2 * *room : 64;
        void *parts = realloc(file->parts, more * sizeof *file->parts);
        if (!parts)
            return NULL;
        file->parts = parts;
        *room = more;
    }
    return &file->parts[file->part_count];
}

static int by_thread(const void *a, const void *b)
{
    const struct spool_part *left = a, *right = b;
    if (left->thread != right->thread)
        return left->thread < right->thread ? -1 : 1;
    return left->data < right->data ? -1 : 1;
}

/* Where the chain of chunks is broken, the next one is looked for at the places where a chunk can begin. */
static int list_chunks(struct spool_file *file)
{
    uint32_t gap = 0;
    int in_gap = 0;
    size_t room = 0;
    for (size_t at = SPOOL_HEADER_BYTES; at < file->bytes;) {
        if (file->bytes - at < sizeof(struct spool_chunk)) {
            spool_file_damaged(file, file->data + at);
            break;
        }
        struct spool_part *part = next_part(file, &room);
        if (!part)
            return -1;
        size_t next = read_chunk(file, at, part);
        if (next) {
            part->gap = gap;
            file->part_count++;
            in_gap = 0;
        } else {
            gap += !in_gap;
            if (!in_gap && !is_unused(file, at))
                spool_file_damaged(file, file->data + at);
            in_gap = 1;
            next = next_place(file, at);
        }
        at = next;
    }
    if (file->part_count < file->header->chunks && !file->damaged) /* cut between two chunks */
        spool_file_damaged(file, file->data + file->bytes);
    if (file->part_count)
        qsort(file->parts, file->part_count, sizeof *file->parts, by_thread);
    return 0;
}

int spool_file_open(struct spool_file *file, const char *path, char *error, size_t error_bytes)
{
    if (map_file(file, path, error, error_bytes) != 0)
        return -1;
    int listed = list_chunks(file);
    close(file->fd);
    if (listed == 0)
        return 0;
    spool_file_close(file);
    return complain(error, error_bytes, path, "cannot be read", ENOMEM);
}

/* --- records ------------------------------------------------------------------------------------------------------ */

struct spool_cursor spool_records(const struct spool_part *part)
{
    return (struct spool_cursor){part->data, part->data + part->bytes};
}

/* Sizes of a definition's struct; 0 for what is none. */
static size_t head_bytes(unsigned type)
{
    static const size_t sizes[] = {
        [SPOOL_META] = sizeof(struct spool_meta),           [SPOOL_MODULE] = sizeof(struct spool_module),
        [SPOOL_PATH] = sizeof(struct spool_path),           [SPOOL_COMM] = sizeof(struct spool_comm),
        [SPOOL_OPERATION] = sizeof(struct spool_operation), [SPOOL_OUTCOME] = sizeof(struct spool_outcome),
        [SPOOL_THREAD] = sizeof(struct spool_thread),       [SPOOL_WATCH] = sizeof(struct spool_watch),
        [SPOOL_MARK_NAME] = sizeof(struct spool_mark_name)};
    return type < sizeof sizes / sizeof sizes[0] ? sizes[type] : 0;
}

static void payload_bytes(const struct spool_view *view, uint64_t *first, uint64_t *second)
{
    *first = *second = 0;
    switch (view->type) {
    case SPOOL_META:
        *first = view->meta.key_bytes;
        *second = view->meta.value_bytes;
        break;
    case SPOOL_MODULE:
        *first = view->module.path_bytes;
        *second = view->module.build_id_bytes;
        break;
    case SPOOL_PATH:
        *first = (uint64_t)view->path.frames * sizeof(uint64_t);
        break;
    case SPOOL_COMM:
        *first = view->comm.name_bytes;
        *second = view->comm.members == UINT32_MAX ? 0 : (uint64_t)view->comm.members * sizeof(int32_t);
        break;
    case SPOOL_MARK_NAME:
        *first = view->mark_name.name_bytes;
        break;
    default:
        break;
    }
}

static const unsigned char *read_definition(const struct spool_cursor *cursor, struct spool_view *view)
{
    size_t head = head_bytes(view->type), left = (size_t)(cursor->end - cursor->at) - 1;
    uint64_t first, second;
    if (head == 0 || left < head)
        return NULL;
    memcpy(&view->meta, cursor->at + 1, head); /* the union's members all begin here */
    payload_bytes(view, &first, &second);
    if (left - head < first || left - head - first < second)
        return NULL;
    view->payload = cursor->at + 1 + head;
    view->payload2 = view->payload + first;
    return view->payload2 + second;
}

static inline int is_hot(unsigned type)
{
    return type >= SPOOL_CALL && type <= SPOOL_LAST_HOT;
}

int spool_next_record(struct spool_file *file, struct spool_cursor *cursor, struct spool_view *view)
{
    if (cursor->at >= cursor->end || *cursor->at == SPOOL_END)
        return 0;
    view->type = (enum spool_record)*cursor->at;
    const unsigned char *next =
        is_hot(view->type) ? spool_get(cursor->at, cursor->end, view->fields) : read_definition(cursor, view);
    if (!next)
        spool_file_damaged(file, cursor->at);
    cursor->at = next ? next : cursor->end;
    return next ? 1 : -1;
}

int spool_goes_on(const struct spool_part *part)
{
    enum { EXPLAINED = 4 };
    const unsigned char *at = part->data + part->bytes, *end = part->data + part->room;
    unsigned records = 0;
    while (at && at < end && is_hot(*at) && records <= EXPLAINED) {
        at = spool_skip(at, end);
        records += at != NULL;
    }
    return records > EXPLAINED;
}

int spool_next_definition(struct spool_cursor *cursor, struct spool_view *view)
{
    while (cursor->at && cursor->at < cursor->end && is_hot(*cursor->at))
        cursor->at = spool_skip(cursor->at, cursor->end);
    if (!cursor->at || cursor->at >= cursor->end || *cursor->at == SPOOL_END)
        return 0;
    view->type = (enum spool_record)*cursor->at;
    cursor->at = read_definition(cursor, view);
    return cursor->at != NULL;
}

/* --- entries ------------------------------------------------------------------------------------------------------ */

const struct spool_live *spool_live_entries(const struct spool_part *part, size_t *count,
                                            const struct spool_thread_state **state)
{
    const struct spool_thread_state *first = (const struct spool_thread_state *)(const void *)part->data;
    size_t skipped = part->has_state ? sizeof *first : 0;
    *state = part->has_state && part->bytes >= sizeof *first ? first : NULL;
    *count = part->bytes > skipped ? (part->bytes - skipped) / sizeof(struct spool_live) : 0;
    return (const struct spool_live *)(const void *)(part->data + skipped);
}

const struct spool_tally *spool_tally_entries(const struct spool_part *part, size_t *count)
{
    *count = part->bytes / sizeof(struct spool_tally);
    return (const struct spool_tally *)(const void *)part->data;
}

const struct spool_device_busy *spool_device_entries(const struct spool_part *part, size_t *count,
                                                     const struct spool_device_state **state)
{
    const struct spool_device_state *first = (const struct spool_device_state *)(const void *)part->data;
    size_t skipped = part->has_state ? sizeof *first : 0;
    *state = part->has_state && part->bytes >= sizeof *first ? first : NULL;
    *count = part->bytes > skipped ? (part->bytes - skipped) / sizeof(struct spool_device_busy) : 0;
    return (const struct spool_device_busy *)(const void *)(part->data + skipped);
}

int spool_inspect(const char *path, struct spool_info *info, char *error, size_t error_bytes)
{
    struct spool_file file;
    if (map_file(&file, path, error, error_bytes) != 0)
        return -1;
    const struct spool_file_header *header = file.header;
    *info = (struct spool_info){.rank = header->rank,
                                .world_size = header->world_size,
                                .life = header->life,
                                .end = header->end,
                                .pid = header->pid,
                                .pid_start = header->pid_start,
                                .pid_namespace = header->pid_namespace,
                                .began_unix_ns = header->epoch_unix_ns};
    memcpy(info->host, header->host, sizeof info->host - 1);
    memcpy(info->boot_id, header->boot_id, sizeof info->boot_id - 1);
    memcpy(info->job, header->job, sizeof info->job - 1);
    memcpy(info->launch, header->launch, sizeof info->launch - 1);
    close(file.fd);
    spool_file_close(&file);
    return 0;
}
