#define _GNU_SOURCE
#include "meeting.h"

#include "../base/descriptor.h"
#include "../base/pause.h"
#include "../base/process.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC "LAPSMEE2"

enum { LOCK_TRIES = 1000 /* a millisecond each */ };

/* Maps the head of what is under own->fd. Returns 0, or an errno value. */
static int map_head(struct attendance *own)
{
    struct stat facts;
    if (fstat(own->fd, &facts) != 0)
        return errno;
    if (facts.st_size < MEETING_HEAD_BYTES + (off_t)MEETING_SEATS * MEETING_SEAT_BYTES)
        return EEXIST;
    own->device = facts.st_dev;
    own->inode = facts.st_ino;
    void *mapped = mmap(NULL, MEETING_HEAD_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, own->fd, 0);
    if (mapped == MAP_FAILED)
        return errno;
    own->meeting = mapped;
    return 0;
}

static off_t offset_of(unsigned seat)
{
    return MEETING_HEAD_BYTES + (off_t)seat * MEETING_SEAT_BYTES;
}

static int take_seat(struct attendance *own)
{
    own->seat = __atomic_fetch_add(&own->meeting->seats_taken, 1, __ATOMIC_SEQ_CST);
    if (own->seat >= MEETING_SEATS)
        return ENOSPC;
    void *room = mmap(NULL, MEETING_SEAT_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, own->fd, offset_of(own->seat));
    if (room == MAP_FAILED)
        return errno;
    own->room = room;
    struct meeting_seat *seat = &own->meeting->seats[own->seat];
    seat->pid = (int32_t)getpid();
    seat->pid_start = process_start("self");
    __atomic_store_n(&seat->state, SEAT_TAKEN, __ATOMIC_SEQ_CST);
    return 0;
}

void meeting_forget(struct attendance *own)
{
    if (own->meeting)
        munmap(own->meeting, MEETING_HEAD_BYTES);
    if (own->room)
        munmap(own->room, MEETING_SEAT_BYTES);
    if (own->fd >= 0)
        close(own->fd);
    *own = (struct attendance){.fd = -1};
}

int meeting_make(struct attendance *own, const char *job, const char *launch)
{
    *own = (struct attendance){.fd = spool_memory_open(MEETING_HEAD_BYTES + (uint64_t)MEETING_SEATS * MEETING_SEAT_BYTES)};
    int error = own->fd < 0 ? errno : map_head(own);
    if (!error) {
        snprintf(own->meeting->job, sizeof own->meeting->job, "%s", job);
        snprintf(own->meeting->launch, sizeof own->meeting->launch, "%s", launch);
        error = take_seat(own);
        memcpy(own->meeting->magic, MAGIC, sizeof own->meeting->magic);
        own->meeting->keeper = own->seat + 1;
    }
    if (error)
        meeting_forget(own);
    return error;
}

static int is_of_job(const struct meeting *meeting, const char *job, const char *launch)
{
    return memcmp(meeting->magic, MAGIC, sizeof meeting->magic) == 0 && strcmp(meeting->job, job) == 0 &&
           strcmp(meeting->launch, launch) == 0;
}

/* The memory of another process, which may have put a file of its own under that number. */
static int open_of(const struct meeting_keeper *keeper)
{
    char path[64], name[64];
    snprintf(path, sizeof path, "/proc/%ld/fd/%d", keeper->pid, keeper->fd);
    ssize_t length = readlink(path, name, sizeof name - 1);
    name[length > 0 ? length : 0] = '\0';
    if (strncmp(name, "/memfd:lapscope", strlen("/memfd:lapscope")) != 0) {
        errno = ESRCH;
        return -1;
    }
    return descriptor_move(open(path, O_RDWR | O_CLOEXEC));
}

int meeting_join(struct attendance *own, const struct meeting_keeper *keeper, const char *job, const char *launch)
{
    char boot_id[40];
    *own = (struct attendance){.fd = -1};
    process_boot(boot_id, sizeof boot_id);
    if (strcmp(boot_id, keeper->boot_id) != 0 || process_namespace() != keeper->pid_namespace ||
        !keeper->pid_start || process_has_gone(keeper->pid, keeper->pid_start))
        return ESRCH;
    own->fd = open_of(keeper);
    int error = own->fd < 0 ? ESRCH : map_head(own);
    if (!error && !is_of_job(own->meeting, job, launch))
        error = EEXIST;
    error = error ? error : take_seat(own);
    if (error)
        meeting_forget(own);
    return error;
}

/* -1: the application has closed it, and may have another file under that number. */
static int own_descriptor(const struct attendance *own)
{
    struct stat facts;
    int is_ours = fstat(own->fd, &facts) == 0 && facts.st_dev == own->device && facts.st_ino == own->inode;
    return is_ours ? own->fd : -1;
}

static unsigned seats_of(const struct attendance *own)
{
    unsigned taken = __atomic_load_n(&own->meeting->seats_taken, __ATOMIC_SEQ_CST);
    return taken < MEETING_SEATS ? taken : MEETING_SEATS;
}

struct spool_memory meeting_own_room(const struct attendance *own)
{
    return (struct spool_memory){
        .fd = own->fd, .offset = (uint64_t)offset_of(own->seat), .bytes = MEETING_SEAT_BYTES, .mapped = own->room};
}

/* Without a descriptor a mapping that is shared gives another one, of more of the same memory (mremap(2), old_size 0). */
static void *map_again(const struct attendance *own, size_t bytes)
{
    unsigned char *mapped = mremap(own->meeting, 0, MEETING_HEAD_BYTES + bytes, MREMAP_MAYMOVE);
    if (mapped == MAP_FAILED)
        return MAP_FAILED;
    munmap(mapped, MEETING_HEAD_BYTES);
    return mapped + MEETING_HEAD_BYTES;
}

const unsigned char *meeting_map_rooms(const struct attendance *own, unsigned *seats)
{
    int fd = own_descriptor(own);
    *seats = seats_of(own);
    size_t bytes = (size_t)*seats * MEETING_SEAT_BYTES;
    void *mapped = fd < 0 ? map_again(own, bytes) : mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, offset_of(0));
    return mapped == MAP_FAILED ? NULL : mapped;
}

void meeting_unmap_rooms(const unsigned char *rooms, unsigned seats)
{
    munmap((void *)(uintptr_t)rooms, (size_t)seats * MEETING_SEAT_BYTES);
}

void meeting_leave_to_parent(struct attendance *own)
{
    int fd = own->meeting ? own_descriptor(own) : -1;
    if (fd >= 0)
        close(fd);
    own->meeting = NULL;
}

unsigned meeting_name_seat(const struct attendance *own, unsigned world, int rank)
{
    struct meeting_seat *seats = own->meeting->seats;
    unsigned life = 1;
    seats[own->seat].world = world;
    seats[own->seat].rank = rank;
    for (unsigned i = 0; i < own->seat; i++)
        life += seats[i].world == world && seats[i].rank == rank;
    return life;
}

/* Whether the process has called exec, and has another seat since. */
static int has_gone_on(const struct attendance *own, unsigned seat)
{
    const struct meeting_seat *seats = own->meeting->seats;
    for (unsigned i = seat + 1; i < seats_of(own); i++)
        if (seats[i].state != SEAT_FREE && seats[i].pid == seats[seat].pid && seats[i].pid_start == seats[seat].pid_start)
            return 1;
    return 0;
}

int meeting_is_alive(const struct attendance *own, unsigned seat)
{
    const struct meeting_seat *other = &own->meeting->seats[seat];
    if (__atomic_load_n(&other->state, __ATOMIC_SEQ_CST) != SEAT_TAKEN)
        return 0;
    return !has_gone_on(own, seat) && !process_has_gone(other->pid, other->pid_start);
}

int meeting_has_others(const struct attendance *own)
{
    for (unsigned i = 0; i < seats_of(own); i++)
        if (i != own->seat && meeting_is_alive(own, i))
            return 1;
    return 0;
}

void meeting_describe(const struct attendance *own, struct meeting_keeper *keeper)
{
    *keeper = (struct meeting_keeper){
        .pid = getpid(), .fd = own->fd, .pid_start = process_start("self"), .pid_namespace = process_namespace()};
    process_boot(keeper->boot_id, sizeof keeper->boot_id);
}

/* Whether who has the lock has gone without giving it back. */
static int is_left_behind(const struct attendance *own, uint32_t holder)
{
    if (holder == 0 || holder == own->seat + 1) /* it has just been given back; another thread */
        return 0;
    const struct meeting_seat *seat = holder <= MEETING_SEATS ? &own->meeting->seats[holder - 1] : NULL;
    return !seat || has_gone_on(own, holder - 1) || process_has_gone(seat->pid, seat->pid_start);
}

int meeting_lock(const struct attendance *own)
{
    for (int i = 0; i < LOCK_TRIES; i++) {
        uint32_t holder = 0;
        if (__atomic_compare_exchange_n(&own->meeting->lock, &holder, own->seat + 1, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
            return 1;
        if (is_left_behind(own, holder) &&
            __atomic_compare_exchange_n(&own->meeting->lock, &holder, own->seat + 1, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
            return 1;
        pause_1_ms();
    }
    return 0;
}

void meeting_unlock(const struct attendance *own)
{
    __atomic_store_n(&own->meeting->lock, 0, __ATOMIC_SEQ_CST);
}
