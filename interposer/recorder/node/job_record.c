#define _GNU_SOURCE
#include "job_record.h"

#include "../base/clock.h"
#include "../base/config.h"
#include "../base/process.h"
#include "job_page.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define SUFFIX ".lapscope-job"

enum { MOST_RECORDS = 100 /* of one job on one node */, DIRECTORY_BYTES = 3900, PATH_BYTES = 4352, STACK_BYTES = 256 << 10 };

static const uint64_t FIRST_WRITE_NS = 500000000, LONGEST_SLEEP_NS = 10000000000;

static struct {
    struct job_page_facts facts;
    struct attendance own;
    struct spool_memory room;
    char directory[DIRECTORY_BYTES], path[PATH_BYTES], fresh[PATH_BYTES]; /* the record, and what becomes the next one */
    mode_t mode;
    uint64_t interval_ns, next_look; /* ticks */
    int has_thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    int is_over;             /* under the lock */
} record = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* --- the file ----------------------------------------------------------------------------------------------------- */

/* A record is for its owner, and for the directory's group where that gives its group to files: a site sets that to read them. */
static int find_directory(void)
{
    char here[DIRECTORY_BYTES] = "";
    struct stat facts;
    if (!*config.dir || (*config.dir != '/' && !process_directory(here, sizeof here)))
        return 0;
    int length = snprintf(record.directory, sizeof record.directory, "%s%s%s", here, *here ? "/" : "", config.dir);
    if (length >= DIRECTORY_BYTES || stat(record.directory, &facts) != 0 || !S_ISDIR(facts.st_mode))
        return 0;
    int of_group = facts.st_mode & S_ISGID && facts.st_mode & S_IRGRP;
    record.mode = 0600 | (of_group ? S_IRGRP : 0);
    return 1;
}

static void put_name(char *name, size_t bytes, const char *text, size_t most)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
    size_t used = 0;
    for (; *text && used < most && used + 1 < bytes; text++)
        name[used++] = strchr(plain, *text) ? *text : '-';
    name[used] = '\0';
}

static uint32_t hash_in(uint32_t hash, const char *text)
{
    for (; *text; text++) /* FNV-1a */
        hash = (hash ^ (unsigned char)*text) * 16777619u;
    return hash;
}

static void name_record(int number)
{
    char job[32], host[72], name[192], behind[16] = "";
    put_name(job, sizeof job, record.facts.job.identity, 24);
    put_name(host, sizeof host, record.facts.host, 64);
    uint32_t hash = hash_in(hash_in(2166136261u, record.facts.job.identity), record.facts.job.launch);
    if (number > 1)
        snprintf(behind, sizeof behind, "+%d", number);
    snprintf(name, sizeof name, "%s-%08x-%s%s", job, hash, host, behind);
    snprintf(record.path, sizeof record.path, "%s/%s" SUFFIX, record.directory, name);
    snprintf(record.fresh, sizeof record.fresh, "%s/.%s.%ld", record.directory, name, (long)getpid());
}

/* Returns 0, or an errno value; nothing is left behind then. */
static int write_fresh(const struct job_text *text)
{
    int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, fd = open(record.fresh, flags, 0600);
    if (fd < 0 && errno == EEXIST && unlink(record.fresh) == 0) /* of a process of that pid that was killed here */
        fd = open(record.fresh, flags, 0600);
    if (fd < 0)
        return errno;
    int error = fchmod(fd, record.mode) == 0 ? 0 : errno;
    for (size_t done = 0; !error && done < text->used;) {
        ssize_t written = write(fd, text->begin + done, text->used - done);
        if (written <= 0)
            error = written < 0 && errno ? errno : ENOSPC;
        else
            done += (size_t)written;
    }
    if (close(fd) != 0 && !error) /* network file systems say only now that there was no room */
        error = errno;
    if (error)
        unlink(record.fresh);
    return error;
}

/* `put` makes the file a record: rename, or link for the first. */
static int publish(int (*put)(const char *, const char *), int is_last)
{
    struct job_text text = {.bytes = JOB_PAGE_BYTES};
    text.begin = mmap(NULL, text.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (text.begin == MAP_FAILED)
        return ENOMEM;
    int error = job_page_write(&text, &record.facts, &record.own, is_last) ? write_fresh(&text) : ENOMEM;
    munmap(text.begin, text.bytes);
    if (!error && put(record.fresh, record.path) != 0) {
        error = errno;
        unlink(record.fresh);
    }
    return error;
}

static void write_record(int is_last)
{
    if (!meeting_lock(&record.own))
        return;
    publish(rename, is_last);
    meeting_unlock(&record.own);
}

/* --- meeting ------------------------------------------------------------------------------------------------------ */

/* Whom a record names as its writer. Returns 0 when it is none of ours, or the last of its ranks has ended. */
static int read_keeper(struct meeting_keeper *keeper)
{
    char text[512];
    unsigned long long start, name_space;
    int fd = open(record.path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    ssize_t length = fd >= 0 ? read(fd, text, sizeof text - 1) : 0;
    if (fd >= 0)
        close(fd);
    text[length > 0 ? length : 0] = '\0';
    const char *table = strstr(text, "\n[keeper]\n"), *row = table ? strchr(table + strlen("\n[keeper]\n"), '\n') : NULL;
    *keeper = (struct meeting_keeper){.fd = -1};
    if (!row || sscanf(row, "%ld\t%llu\t%llu\t%39[^\t\n]\t%d", &keeper->pid, &start, &name_space, keeper->boot_id, &keeper->fd) != 5)
        return 0;
    keeper->pid_start = start;
    keeper->pid_namespace = name_space;
    return 1;
}

static int link_first(const char *from, const char *to)
{
    int error = link(from, to);
    int saved_errno = errno;
    unlink(from);
    errno = saved_errno;
    return error;
}

/* With a meeting of its own, whose record must not be there yet. */
static int open_own(void)
{
    int error = meeting_make(&record.own, record.facts.job.identity, record.facts.job.launch);
    if (!error && (error = publish(link_first, 0)))
        meeting_forget(&record.own);
    return error;
}

/* All ranks of a node come here at once: a record appears whole, and whoever is late finds it. */
static int meet(void)
{
    for (int number = 1; number <= MOST_RECORDS; number++) {
        struct meeting_keeper keeper;
        name_record(number);
        int error = access(record.path, F_OK) == 0 ? EEXIST : open_own();
        if (!error)
            return 1;
        if (error != EEXIST)
            return 0;
        if (read_keeper(&keeper) &&
            meeting_join(&record.own, &keeper, record.facts.job.identity, record.facts.job.launch) == 0)
            return 1;
    }
    return 0;
}

static int64_t number_in(const char *variable)
{
    const char *value = getenv(variable);
    return value ? atoll(value) : 0;
}

static void find_facts(const struct spool_identity *identity)
{
    static const char *const jobs[] = {"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "FLUX_JOB_ID", "JOB_ID"};
    static const char *const counts[] = {"SLURM_STEP_NUM_NODES", "SLURM_JOB_NUM_NODES", "SLURM_NNODES", "FLUX_JOB_NNODES", "PBS_NUM_NODES"};
    struct job_page_facts *facts = &record.facts;
    job_find(&facts->job, identity->world_size);
    for (size_t i = 0; i < sizeof jobs / sizeof jobs[0] && !*facts->batch_job; i++)
        snprintf(facts->batch_job, sizeof facts->batch_job, "%s", getenv(jobs[i]) ? getenv(jobs[i]) : "");
    for (size_t i = 0; i < sizeof counts / sizeof counts[0] && facts->nodes <= 0; i++)
        facts->nodes = number_in(counts[i]);
    gethostname(facts->host, sizeof facts->host - 1);
    facts->user = getuid();
    facts->has_command = config.job_command;
    facts->began_unix_ns = identity->epoch_unix_ns;
}

const struct spool_memory *job_record_begin(struct spool_identity *identity)
{
    find_facts(identity);
    record.interval_ns = (uint64_t)config.job_interval * 1000000000u;
    if (!find_directory() || !meet())
        return NULL;
    record.room = meeting_own_room(&record.own);
    identity->world = record.facts.job.world;
    identity->job = record.facts.job.identity;
    identity->launch = record.facts.job.launch;
    identity->life = meeting_name_seat(&record.own, identity->world, identity->rank);
    return &record.room;
}

/* --- who writes --------------------------------------------------------------------------------------------------- */

static int is_keeper(void)
{
    return __atomic_load_n(&record.own.meeting->keeper, __ATOMIC_SEQ_CST) == record.own.seat + 1;
}

/* Sleeps, under the lock; returns whether all is over. The process may be kept alive by nobody but us. */
static int sleep_for(uint64_t ns)
{
    uint64_t end = clock_nanoseconds(CLOCK_MONOTONIC) + ns, now;
    while (!record.is_over && (now = clock_nanoseconds(CLOCK_MONOTONIC)) < end) {
        uint64_t until = end - now < LONGEST_SLEEP_NS ? end : now + LONGEST_SLEEP_NS;
        struct timespec time = {(time_t)(until / 1000000000u), (long)(until % 1000000000u)};
        pthread_cond_timedwait(&record.wake, &record.lock, &time);
        if (process_has_only_helpers(1))
            return 1;
    }
    return record.is_over;
}

static void *keep(void *argument)
{
    uint64_t pause = record.interval_ns < FIRST_WRITE_NS ? record.interval_ns : FIRST_WRITE_NS; /* jobs that are killed soon count, too */
    (void)argument;
    prctl(PR_SET_NAME, "lapscope");
    pthread_mutex_lock(&record.lock);
    while (!sleep_for(pause)) {
        pause = record.interval_ns;
        pthread_mutex_unlock(&record.lock); /* writing may take as long as it likes */
        write_record(0);
        pthread_mutex_lock(&record.lock);
    }
    pthread_mutex_unlock(&record.lock);
    return NULL;
}

static int make_thread(size_t stack_bytes)
{
    pthread_t thread;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    if (stack_bytes)
        pthread_attr_setstacksize(&attributes, stack_bytes);
    int error = pthread_create(&thread, &attributes, keep, NULL);
    pthread_attr_destroy(&attributes);
    return error;
}

static void begin_to_write(void)
{
    sigset_t all, before;
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&record.wake, &attributes);
    pthread_condattr_destroy(&attributes);
    sigfillset(&all); /* signals that the application is sent are not for this thread */
    pthread_sigmask(SIG_BLOCK, &all, &before);
    if (make_thread(STACK_BYTES) == EINVAL) /* thread-local variables of the program need more */
        make_thread(0);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    record.has_thread = 1;
}

static void plan_look(uint64_t now)
{
    record.next_look = now + clock_ticks(record.interval_ns, spool_header()->nominal_ticks_per_ns);
}

void job_record_start(void)
{
    plan_look(clock_now());
    if (is_keeper())
        begin_to_write();
}

void job_record_look(uint64_t now)
{
    struct meeting *meeting = record.own.meeting;
    if (!meeting || record.has_thread || now < record.next_look)
        return;
    int saved_errno = errno;
    plan_look(now);
    uint32_t keeper = __atomic_load_n(&meeting->keeper, __ATOMIC_SEQ_CST);
    if ((keeper == 0 || keeper > MEETING_SEATS || !meeting_is_alive(&record.own, keeper - 1)) &&
        __atomic_compare_exchange_n(&meeting->keeper, &keeper, record.own.seat + 1, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
        begin_to_write();
    errno = saved_errno;
}

/* Of two that end at the same time each sees that the other has gone, at least the later one. Who aborts will not see the others' ends. */
void job_record_end(void)
{
    struct meeting *meeting = record.own.meeting;
    if (!meeting)
        return;
    pthread_mutex_lock(&record.lock);
    record.is_over = 1;
    if (record.has_thread)
        pthread_cond_signal(&record.wake);
    pthread_mutex_unlock(&record.lock);
    __atomic_store_n(&meeting->seats[record.own.seat].state, SEAT_LEFT, __ATOMIC_SEQ_CST);
    if (is_keeper())
        __atomic_store_n(&meeting->keeper, 0, __ATOMIC_SEQ_CST);
    int has_others = meeting_has_others(&record.own);
    if (!has_others || spool_header()->end == SPOOL_ABORTED)
        write_record(!has_others);
}

void job_record_forget(void)
{
    meeting_leave_to_parent(&record.own);
}
