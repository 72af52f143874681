#define _GNU_SOURCE
#include "spool_reader.h"

#include "spool_codec.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static int complain(char *error, size_t error_bytes, const char *path, const char *what)
{
    snprintf(error, error_bytes, "%s %s", path, what);
    return -1;
}

int spool_file_open(struct spool_file *file, const char *path, char *error, size_t error_bytes)
{
    struct stat facts;
    char what[128];
    *file = (struct spool_file){0};
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &facts) != 0) {
        snprintf(what, sizeof what, "cannot be read (%s)", strerror(errno));
        if (fd >= 0)
            close(fd);
        return complain(error, error_bytes, path, what);
    }
    if (facts.st_size < (off_t)SPOOL_HEADER_BYTES) {
        close(fd);
        return complain(error, error_bytes, path, "is shorter than a spool's header: it was cut off before anything was recorded");
    }
    file->bytes = (size_t)facts.st_size;
    void *mapped = mmap(NULL, file->bytes, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    if (mapped == MAP_FAILED) {
        snprintf(what, sizeof what, "cannot be mapped (%s)", strerror(errno));
        return complain(error, error_bytes, path, what);
    }
    file->data = mapped;
    file->header = mapped;
    const char *trouble = memcmp(file->header->magic, SPOOL_MAGIC, sizeof file->header->magic) ? "is not a lapscope spool"
                          : file->header->version != SPOOL_VERSION
                              ? "was written by another version of lapscope: convert it with that version"
                              : NULL;
    if (trouble) {
        spool_file_close(file);
        return complain(error, error_bytes, path, trouble);
    }
    madvise(mapped, file->bytes, MADV_SEQUENTIAL);
    return 0;
}

void spool_file_close(struct spool_file *file)
{
    if (file->data)
        munmap((void *)(uintptr_t)file->data, file->bytes);
    file->data = NULL;
}

const struct spool_chunk *spool_next_chunk(struct spool_file *file, const struct spool_chunk *previous)
{
    size_t at = SPOOL_HEADER_BYTES;
    if (previous)
        at = (size_t)((const unsigned char *)previous - file->data) + (size_t)previous->bytes;
    if (at == file->bytes)
        return NULL;
    const struct spool_chunk *chunk = (const struct spool_chunk *)(file->data + at);
    if (file->bytes - at < sizeof *chunk) {
        file->damaged++;
        return NULL;
    }
    if (chunk->magic == 0) /* reserved, and killed before it was taken into use */
        return NULL;
    if (chunk->magic != SPOOL_CHUNK_MAGIC || chunk->bytes < SPOOL_CHUNK_ALIGN || chunk->bytes % SPOOL_CHUNK_ALIGN ||
        chunk->bytes > file->bytes - at) {
        file->damaged++;
        return NULL;
    }
    return chunk;
}

struct spool_cursor spool_records(const struct spool_chunk *chunk)
{
    uint64_t room = chunk->bytes - sizeof *chunk;
    const unsigned char *first = (const unsigned char *)(chunk + 1);
    return (struct spool_cursor){first, first + (chunk->used < room ? chunk->used : room)};
}

/* Sizes of a definition's struct; 0 for what is none. */
static size_t head_bytes(unsigned type)
{
    static const size_t sizes[] = {
        [SPOOL_META] = sizeof(struct spool_meta),           [SPOOL_MODULE] = sizeof(struct spool_module),
        [SPOOL_PATH] = sizeof(struct spool_path),           [SPOOL_COMM] = sizeof(struct spool_comm),
        [SPOOL_OPERATION] = sizeof(struct spool_operation), [SPOOL_OUTCOME] = sizeof(struct spool_outcome),
        [SPOOL_THREAD] = sizeof(struct spool_thread)};
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
    default:
        break;
    }
}

static int read_definition(struct spool_cursor *cursor, struct spool_view *view)
{
    size_t head = head_bytes(view->type), left = (size_t)(cursor->end - cursor->at);
    uint64_t first, second;
    if (head == 0 || left < head)
        return 0;
    memcpy(&view->meta, cursor->at, head); /* the union's members all begin here */
    payload_bytes(view, &first, &second);
    if (left - head < first || left - head - first < second)
        return 0;
    view->payload = cursor->at + head;
    view->payload2 = view->payload + first;
    cursor->at = view->payload2 + second;
    return 1;
}

int spool_next_record(struct spool_file *file, struct spool_cursor *cursor, struct spool_view *view)
{
    if (cursor->at >= cursor->end || *cursor->at == SPOOL_END)
        return 0;
    view->type = (enum spool_record)*cursor->at;
    if (view->type >= SPOOL_CALL && view->type <= SPOOL_FOREIGN) {
        const unsigned char *next = spool_get(cursor->at, cursor->end, view->fields);
        if (next) {
            cursor->at = next;
            return 1;
        }
    } else {
        cursor->at++;
        if (read_definition(cursor, view))
            return 1;
    }
    file->damaged++;
    cursor->at = cursor->end;
    return 0;
}

const struct spool_live *spool_live_entries(const struct spool_chunk *chunk, size_t *count,
                                            const struct spool_thread_state **state)
{
    const struct spool_thread_state *first = (const struct spool_thread_state *)(chunk + 1);
    *state = chunk->has_state == 1 ? first : NULL;
    const struct spool_live *entries = (const struct spool_live *)(*state ? (const void *)(first + 1) : (const void *)first);
    *count = (size_t)((const unsigned char *)chunk + chunk->bytes - (const unsigned char *)entries) / sizeof *entries;
    return entries;
}

const struct spool_tally *spool_tally_entries(const struct spool_chunk *chunk, size_t *count)
{
    *count = (size_t)(chunk->bytes - sizeof *chunk) / sizeof(struct spool_tally);
    return (const struct spool_tally *)(chunk + 1);
}

int spool_inspect(const char *path, struct spool_info *info, char *error, size_t error_bytes)
{
    struct spool_file file;
    if (spool_file_open(&file, path, error, error_bytes) != 0)
        return -1;
    const struct spool_file_header *header = file.header;
    *info = (struct spool_info){
        .rank = header->rank, .life = header->life, .end = header->end, .pid = header->pid, .pid_start = header->pid_start};
    memcpy(info->host, header->host, sizeof info->host - 1);
    memcpy(info->boot_id, header->boot_id, sizeof info->boot_id - 1);
    spool_file_close(&file);
    return 0;
}
