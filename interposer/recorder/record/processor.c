#define _GNU_SOURCE
#include "processor.h"

#include "../base/descriptor.h"
#include "../base/uncancelled.h"
#include "../spool/definitions.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

struct share {
    long long run_ns, wait_ns; /* Documentation/scheduler/sched-stats.rst: /proc/PID/schedstat */
    long long switches, preemptions, peak_memory_kib;
};

static struct share begun;
static pid_t thread_id; /* 0: not known */
static struct thread *owner;
static struct {
    int fd;
    struct stat is; /* the application may close the number, and have a file of its own under it */
} times = {.fd = -1};

static struct {
    uint64_t ticks;
    long long wait_ns;
} looked; /* last */

static int open_file(const char *name)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%ld/%s", (long)thread_id, name);
    return open(path, O_RDONLY | O_CLOEXEC);
}

static int read_file(int fd, char *text, size_t bytes)
{
    ssize_t length = fd >= 0 ? pread(fd, text, bytes - 1, 0) : -1;
    text[length > 0 ? length : 0] = '\0';
    return length > 0;
}

static int are_open(void)
{
    struct stat now;
    return times.fd >= 0 && fstat(times.fd, &now) == 0 && now.st_dev == times.is.st_dev && now.st_ino == times.is.st_ino;
}

static long long number_behind(const char *text, const char *name)
{
    const char *at = strstr(text, name);
    return at ? atoll(at + strlen(name)) : 0;
}

static int read_times(struct share *share)
{
    char text[64];
    return are_open() && read_file(times.fd, text, sizeof text) &&
           sscanf(text, "%lld %lld", &share->run_ns, &share->wait_ns) == 2;
}

static int read_share(struct share *share)
{
    char text[4096];
    if (!read_times(share))
        return 0;
    int status = open_file("status");
    read_file(status, text, sizeof text);
    if (status >= 0)
        close(status);
    share->switches = number_behind(text, "\nvoluntary_ctxt_switches:");
    share->preemptions = number_behind(text, "\nnonvoluntary_ctxt_switches:");
    share->peak_memory_kib = number_behind(text, "\nVmHWM:");
    return 1;
}

void processor_begin(struct thread *t)
{
    int saved_errno = errno, cancel_state = uncancelled_begin();
    owner = t;
    thread_id = (pid_t)syscall(SYS_gettid);
    times.fd = descriptor_move(open_file("schedstat"));
    if (times.fd < 0 || fstat(times.fd, &times.is) != 0 || !read_share(&begun))
        thread_id = 0;
    looked.wait_ns = begun.wait_ns;
    looked.ticks = clock_now();
    uncancelled_end(cancel_state);
    errno = saved_errno;
}

/* The part of an interval from which on it was disturbed: less is what any thread waits after each time that it slept.
 */
static int is_much(uint64_t ticks, long long wait_ns)
{
    enum { SHARE = 50, LEAST_NS = 100000 };
    return wait_ns >= LEAST_NS && clock_ticks((uint64_t)wait_ns * SHARE, spool_header()->nominal_ticks_per_ns) >= ticks;
}

void processor_look(struct thread *t, uint64_t now)
{
    struct share share;
    struct spool_stream *stream = &t->stream;
    int saved_errno = errno, cancel_state = uncancelled_begin();
    if (thread_id && t == owner && now > looked.ticks && read_times(&share)) {
        uint64_t fields[] = {now - spool_header()->first.ticks, now - looked.ticks, (uint64_t)(share.wait_ns - looked.wait_ns)};
        if (is_much(fields[1], (long long)fields[2]) && !stream->full && spool_stream_room(stream, SPOOL_RECORD_ROOM, 0))
            spool_stream_commit(stream, spool_put(stream->at, SPOOL_STARVED, fields, 3));
        if (thread_hooks.starved)
            thread_hooks.starved(clock_ticks((uint64_t)(share.wait_ns - looked.wait_ns), spool_header()->nominal_ticks_per_ns));
        looked.ticks = now;
        looked.wait_ns = share.wait_ns;
    }
    uncancelled_end(cancel_state);
    errno = saved_errno;
}

static int allowed_processors(void)
{
    cpu_set_t set;
    return sched_getaffinity(thread_id, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 0;
}

void processor_define(struct thread *t)
{
    struct share now;
    char text[160];
    int saved_errno = errno, cancel_state = uncancelled_begin();
    processor_look(t, clock_now());
    if (thread_id && read_share(&now)) {
        snprintf(text, sizeof text, "%lld\t%lld\t%lld\t%lld\t%d\t%ld\t%lld", now.run_ns - begun.run_ns, now.wait_ns - begun.wait_ns,
                 now.switches - begun.switches, now.preemptions - begun.preemptions, allowed_processors(),
                 sysconf(_SC_NPROCESSORS_ONLN), now.peak_memory_kib << 10);
        spool_define_meta(&t->stream, "processor", text);
        thread_id = 0; /* once */
    }
    if (are_open())
        close(times.fd);
    times.fd = -1;
    uncancelled_end(cancel_state);
    errno = saved_errno;
}
