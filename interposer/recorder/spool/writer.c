#define _GNU_SOURCE
#include "writer.h"

#include "../base/clock.h"
#include "../base/descriptor.h"
#include "../base/log.h"
#include "../base/process.h"
#include "../base/uncancelled.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { LARGEST_STREAM_CHUNK = 8 << 20, MEMORY_BEYOND_BYTES = 16 << 20 /* for what max_bytes does not bound */ };

static struct {
    int fd;
    dev_t device;             /* which file fd was opened on: an application that closes what is not its own may have */
    ino_t inode;              /* put another under that number */
    struct spool_file_header *header;
    uint64_t end, max_bytes; /* of the file */
    struct spool_memory memory; /* where it is memory alone: takes no more room than is written, and no disk; bytes 0: it is a file */
    uint64_t defined_bytes;   /* in definitions */
    uint64_t clock_refreshed; /* ticks */
    enum spool_full full;     /* why the last chunk was refused */
    pthread_mutex_t lock;
} spool = {.fd = -1, .lock = PTHREAD_MUTEX_INITIALIZER};

void (*spool_grown)(uint64_t bytes);

struct spool_file_header *spool_header(void)
{
    return spool.header;
}

/* --- the file ----------------------------------------------------------------------------------------------------- */

static int look_at_file(struct stat *facts)
{
    return fstat(spool.fd, facts) == 0 && facts->st_dev == spool.device && facts->st_ino == spool.inode;
}

int spool_is_removed(void)
{
    struct stat facts;
    return !look_at_file(&facts) || facts.st_nlink == 0;
}

/* Reserves blocks: a store into a hole of a full disk would be a SIGBUS in the application. */
static int reserve(uint64_t offset, uint64_t bytes)
{
    struct stat facts;
    if (spool.memory.bytes)
        return offset + bytes <= spool.memory.bytes ? 0 : ENOSPC;
    if (!look_at_file(&facts))
        return EBADF;
    struct rlimit limit; /* growing a file past it raises SIGXFSZ */
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && offset + bytes > limit.rlim_cur)
        return EFBIG;
    sigset_t all, before; /* it would return EINTR where signals come faster than it reserves */
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    int error = posix_fallocate(spool.fd, (off_t)offset, (off_t)bytes);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

static void fill_header(struct spool_file_header *header, const struct spool_identity *identity)
{
    struct spool_clock_pair now = clock_pair();
    header->version = SPOOL_VERSION;
    header->header_bytes = SPOOL_HEADER_BYTES;
    header->clock = clock_is_tsc ? SPOOL_CLOCK_TSC : SPOOL_CLOCK_MONOTONIC;
    header->rank = identity->rank;
    header->world_size = identity->world_size;
    header->thread_level = identity->thread_level;
    header->world = identity->world;
    header->life = identity->life;
    header->pid = getpid();
    header->pid_start = process_start("self");
    header->pid_namespace = process_namespace();
    snprintf(header->job, sizeof header->job, "%s", identity->job ? identity->job : "");
    snprintf(header->launch, sizeof header->launch, "%s", identity->launch ? identity->launch : "");
    gethostname(header->host, sizeof header->host - 1);
    process_boot(header->boot_id, sizeof header->boot_id);
    header->first = identity->first;
    header->epoch_unix_ns = identity->epoch_unix_ns;
    header->init_end = identity->init_end;
    uint64_t ticks = now.ticks - identity->first.ticks;
    int64_t ns = now.monotonic_ns - identity->first.monotonic_ns;
    header->nominal_ticks_per_ns = ns > 0 ? (double)ticks / (double)ns : 1.0;
    memcpy(header->magic, SPOOL_MAGIC, sizeof header->magic);
}

int spool_memory_open(uint64_t bytes)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && bytes > limit.rlim_cur) {
        errno = EFBIG; /* and no SIGXFSZ */
        return -1;
    }
    int fd = (int)syscall(SYS_memfd_create, "lapscope", 1u /* MFD_CLOEXEC */); /* glibc 2.17 has no function for it */
    if (fd >= 0 && ftruncate(fd, (off_t)bytes) != 0) {
        close(fd);
        return -1;
    }
    return descriptor_move(fd);
}

static void *map(uint64_t offset, uint64_t bytes)
{
    if (spool.memory.mapped)
        return spool.memory.mapped + offset;
    return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, spool.fd, (off_t)(spool.memory.offset + offset));
}

/* Maps the header of the file, or of the memory, under `fd`. */
static int begin(int fd, uint64_t max_bytes, const struct spool_identity *identity)
{
    struct stat facts;
    if (fstat(fd, &facts) == 0) {
        spool.device = facts.st_dev;
        spool.inode = facts.st_ino;
    }
    spool.fd = fd;
    int error = reserve(0, SPOOL_HEADER_BYTES);
    void *mapped = error ? MAP_FAILED : map(0, SPOOL_HEADER_BYTES);
    if (mapped == MAP_FAILED)
        return error ? error : errno;
    spool.end = SPOOL_HEADER_BYTES;
    spool.max_bytes = max_bytes;
    spool.header = mapped;
    fill_header(spool.header, identity);
    return 0;
}

int spool_create(const char *path, uint64_t max_bytes, const struct spool_identity *identity)
{
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return errno;
    fd = descriptor_move(fd);
    int error = begin(fd, max_bytes, identity);
    if (error) {
        unlink(path);
        close(fd);
        spool.fd = -1;
    }
    return error;
}

int spool_create_in_memory(const struct spool_memory *given, uint64_t max_bytes, const struct spool_identity *identity)
{
    struct spool_memory own = {.bytes = max_bytes + MEMORY_BEYOND_BYTES};
    if (!given)
        own.fd = spool_memory_open(own.bytes);
    spool.memory = given ? *given : own;
    if (spool.memory.fd < 0 && !spool.memory.mapped)
        return errno;
    int error = begin(spool.memory.fd, max_bytes, identity);
    if (error && !given)
        close(own.fd);
    if (error)
        spool.fd = -1;
    return error;
}

static void set_clock(struct spool_file_header *header)
{
    unsigned next = header->latest_index + 1; /* index 0 means none, so the first pair goes to latest[1] */
    header->latest[next & 1] = clock_pair();
    __atomic_store_n(&header->latest_index, next, __ATOMIC_RELEASE);
}

void spool_refresh_clock(void)
{
    struct spool_file_header *header = spool.header;
    if (!header)
        return;
    pthread_mutex_lock(&spool.lock);
    uint64_t now = clock_now();
    if (now - spool.clock_refreshed > clock_ticks(100000000, header->nominal_ticks_per_ns)) { /* 0.1 s */
        set_clock(header);
        spool.clock_refreshed = now;
    }
    pthread_mutex_unlock(&spool.lock);
}

/* The mark comes last: whoever sees it sees all of the chunk's header. */
static struct spool_chunk *new_chunk(struct spool_chunk head, int exempt)
{
    uint64_t bytes = head.bytes;
    static int said;
    int saved_errno = errno, cancel_state = uncancelled_begin();
    struct spool_chunk *chunk = NULL;
    bytes = (bytes + SPOOL_CHUNK_ALIGN - 1) / SPOOL_CHUNK_ALIGN * SPOOL_CHUNK_ALIGN;
    pthread_mutex_lock(&spool.lock);
    if (exempt || spool.end + bytes <= spool.max_bytes) {
        int error = reserve(spool.end, bytes);
        spool.full = error == EFBIG ? SPOOL_FULL_FILE_SIZE : SPOOL_FULL_DISK;
        void *mapped = error ? MAP_FAILED : map(spool.end, bytes);
        if (mapped == MAP_FAILED) {
            if (spool_grown) /* else it is one of the first records, and whoever starts says that there are none */
                log_once(&said, "the spool cannot grow (%s): rank %d goes on recording summaries only; %s keeps the detail",
                         strerror(error ? error : errno), spool.header->rank,
                         error == EFBIG   ? "a higher limit on the size of files (ulimit -f)"
                         : error == EBADF ? "a program that closes no descriptors but its own"
                                          : "more room, or LAPSCOPE_SPOOL_DIR on another disk,");
        } else {
            chunk = mapped;
            head.bytes = bytes;
            *chunk = head;
            __atomic_store_n(&chunk->magic, SPOOL_CHUNK_MAGIC, __ATOMIC_RELEASE);
            spool.end += bytes;
            spool.header->chunks++;
        }
    } else {
        spool.full = SPOOL_FULL_MAX_MB;
    }
    uint64_t grown_to = chunk ? spool.end : spool.full == SPOOL_FULL_MAX_MB ? UINT64_MAX : 0;
    pthread_mutex_unlock(&spool.lock);
    if (spool_grown && grown_to)
        spool_grown(grown_to);
    uncancelled_end(cancel_state);
    errno = saved_errno;
    return chunk;
}

struct spool_chunk *spool_new_chunk(enum spool_chunk_kind kind, unsigned thread, uint64_t bytes, uint64_t base, int exempt)
{
    return new_chunk((struct spool_chunk){.kind = (uint16_t)kind, .thread = (uint16_t)thread, .bytes = bytes, .base = base},
                     exempt);
}

struct spool_chunk *spool_new_state_chunk(unsigned thread, uint64_t bytes)
{
    return new_chunk(
        (struct spool_chunk){.kind = SPOOL_CHUNK_LIVE, .thread = (uint16_t)thread, .bytes = bytes, .has_state = 1}, 1);
}

struct spool_chunk *spool_new_device_chunk(uint64_t bytes)
{
    return new_chunk((struct spool_chunk){.kind = SPOOL_CHUNK_DEVICE, .bytes = bytes, .has_state = 1}, 0);
}

void spool_finish(enum spool_end end)
{
    spool.clock_refreshed = 0; /* the last pair is the one that matters most */
    spool_refresh_clock();
    spool.header->end = end;
}

void spool_left(enum spool_end end)
{
    set_clock(spool.header); /* should another thread set it now, then to nearly the same */
    spool.header->end = end;
}

/* --- streams ------------------------------------------------------------------------------------------------------ */

/* A chunk is at most a quarter of what is left, that the limit is not reached by room that nobody uses. */
static uint64_t chunk_bytes(const struct spool_stream *stream)
{
    uint64_t end = __atomic_load_n(&spool.end, __ATOMIC_RELAXED);
    uint64_t share = end < spool.max_bytes ? (spool.max_bytes - end) / 4 : 0;
    share = share < SPOOL_CHUNK_ALIGN ? SPOOL_CHUNK_ALIGN : share / SPOOL_CHUNK_ALIGN * SPOOL_CHUNK_ALIGN;
    return stream->next_bytes < share ? stream->next_bytes : share;
}

int spool_stream_grow(struct spool_stream *stream, uint64_t bytes, int exempt)
{
    if (stream->full && !exempt)
        return 0;
    uint64_t wanted = stream->full ? SPOOL_CHUNK_ALIGN : chunk_bytes(stream);
    uint64_t needed = bytes + sizeof(struct spool_chunk) + SPOOL_RECORD_ROOM;
    uint64_t base = spool.header->first.ticks;
    struct spool_chunk *chunk =
        spool_new_chunk(SPOOL_CHUNK_STREAM, stream->thread, wanted > needed ? wanted : needed, base, exempt);
    if (!chunk) {
        if (!spool.header->summarized)
            spool.header->summarized = (uint32_t)spool.full;
        stream->full = spool.full != SPOOL_FULL_MAX_MB;
        return 0;
    }
    stream->chunk = chunk;
    stream->at = (unsigned char *)(chunk + 1);
    stream->end = (unsigned char *)chunk + chunk->bytes;
    stream->last_begin = base;
    if (stream->next_bytes < LARGEST_STREAM_CHUNK)
        stream->next_bytes *= 2;
    spool_refresh_clock();
    return 1;
}

int spool_define(struct spool_stream *stream, enum spool_record type, const void *head, size_t head_bytes,
                 const void *payload, size_t payload_bytes, const void *payload2, size_t payload2_bytes)
{
    if (!spool_stream_room(stream, 1 + head_bytes + payload_bytes + payload2_bytes + SPOOL_RECORD_ROOM, 1))
        return 0;
    unsigned char *at = stream->at;
    *at++ = (unsigned char)type;
    memcpy(at, head, head_bytes);
    at += head_bytes;
    if (payload_bytes)
        memcpy(at, payload, payload_bytes);
    at += payload_bytes;
    if (payload2_bytes)
        memcpy(at, payload2, payload2_bytes);
    spool_stream_commit(stream, at + payload2_bytes);
    __atomic_fetch_add(&spool.defined_bytes, 1 + head_bytes + payload_bytes + payload2_bytes, __ATOMIC_RELAXED);
    return 1;
}

enum spool_detail spool_definition_detail(void)
{
    uint64_t defined = __atomic_load_n(&spool.defined_bytes, __ATOMIC_RELAXED), sixteenth = spool.max_bytes / 16;
    uint64_t beyond = defined / sixteenth;
    return beyond < 4 ? SPOOL_DEFINE_ALL : beyond > 6 ? SPOOL_DEFINE_LEAST : (enum spool_detail)(beyond - 3);
}

void spool_define_meta(struct spool_stream *stream, const char *key, const char *value)
{
    struct spool_meta meta = {(uint16_t)strlen(key), (uint32_t)strlen(value)};
    spool_define(stream, SPOOL_META, &meta, sizeof meta, key, meta.key_bytes, value, meta.value_bytes);
}
