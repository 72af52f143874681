#define _GNU_SOURCE
#include "meeting.h"

#include "../base/descriptor.h"
#include "../base/process.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MAGIC "LAPSMEET"

enum { LOCK_TRIES = 1000 /* a millisecond each */ };

static uint64_t start_of(long pid)
{
    char text[24];
    snprintf(text, sizeof text, "%ld", pid);
    return process_start(text);
}

/* Maps what is under own->fd. Returns 0, or an errno value. */
static int map(struct attendance *own)
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

static int take_seat(struct attendance *own)
{
    own->seat = __atomic_fetch_add(&own->meeting->seats_taken, 1, __ATOMIC_SEQ_CST);
    if (own->seat >= MEETING_SEATS)
        return ENOSPC;
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
    if (own->fd >= 0)
        close(own->fd);
    *own = (struct attendance){.fd = -1};
}

int meeting_make(struct attendance *own, const char *job, const char *launch)
{
    *own = (struct attendance){.fd = spool_memory_open(MEETING_HEAD_BYTES + (uint64_t)MEETING_SEATS * MEETING_SEAT_BYTES)};
    int error = own->fd < 0 ? errno : map(own);
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
        start_of(keeper->pid) != keeper->pid_start || !keeper->pid_start)
        return ESRCH;
    own->fd = open_of(keeper);
    int error = own->fd < 0 ? ESRCH : map(own);
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

struct spool_memory meeting_room(const struct attendance *own, unsigned seat)
{
    return (struct spool_memory){.fd = own_descriptor(own),
                                 .offset = MEETING_HEAD_BYTES + (uint64_t)seat * MEETING_SEAT_BYTES,
                                 .bytes = MEETING_SEAT_BYTES};
}

static unsigned seats_of(const struct attendance *own)
{
    unsigned taken = __atomic_load_n(&own->meeting->seats_taken, __ATOMIC_SEQ_CST);
    return taken < MEETING_SEATS ? taken : MEETING_SEATS;
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
    return !has_gone_on(own, seat) && start_of(other->pid) == other->pid_start;
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

/* The kernel lets the lock go with the process. */
int meeting_lock(const struct attendance *own)
{
    const struct timespec pause = {0, 1000000};
    int fd = own_descriptor(own);
    for (int i = 0; i < LOCK_TRIES && fd >= 0; i++) {
        if (flock(fd, LOCK_EX | LOCK_NB) == 0)
            return 1;
        nanosleep(&pause, NULL);
    }
    return 0;
}

void meeting_unlock(const struct attendance *own)
{
    int fd = own_descriptor(own);
    if (fd >= 0)
        flock(fd, LOCK_UN);
}
