#define _GNU_SOURCE
#include "recorder.h"

#include "../base/clock.h"
#include "../base/config.h"
#include "../base/held.h"
#include "../base/log.h"
#include "../base/own_stack.h"
#include "../base/pause.h"
#include "../base/rundir.h"
#include "../base/uncancelled.h"
#include "../inject/inject.h"
#include "../node/job_record.h"
#include "../profile/profile.h"
#include "../reach/reach.h"
#include "../sends/sends.h"
#include "../record/callsite.h"
#include "../record/comm.h"
#include "../record/counters.h"
#include "../record/device.h"
#include "../record/entry.h"
#include "../record/facts.h"
#include "../record/meter.h"
#include "../record/nap.h"
#include "../record/record.h"
#include "../record/sample.h"
#include "../record/watchdog.h"
#include "../store/store.h"
#include "last_rank.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { JOB_SPOOL_BYTES = 512 << 10 /* of LAPSCOPE_RECORD=job: its definitions may take a quarter */ };

static struct rundir dir;
static pid_t owner; /* a forked child must leave its parent's spool alone */
static int all_ended; /* all sessions are over */
enum { NOBODY = 0, HAS_STOPPED = -1 };
static pid_t stopper; /* the thread that ends recording at this moment, or one of these */

static void forget_in_child(void)
{
    recorder_state = RECORDER_OFF;
    device_forget();
    job_record_forget();
}

/* Leaves word in the run directory of a spool that lies elsewhere: "host<TAB>path". */
static void point_to_spool(void)
{
    char path[RUNDIR_PATH_BYTES + 8], text[RUNDIR_PATH_BYTES + 300];
    if (!*config.spool_dir || dir.by_node)
        return;
    snprintf(path, sizeof path, "%.*s.spool-at", (int)(strlen(dir.database) - strlen(".db")), dir.database);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    int length = snprintf(text, sizeof text, "%s\t%s\n", spool_header()->host, dir.spool);
    if (fd < 0 || write(fd, text, (size_t)length) != length)
        log_line("%s cannot be written: should this rank be killed, its data are in %s", path, dir.spool);
    if (fd >= 0)
        close(fd);
}

/* LAPSCOPE_RECORD=off: in memory, for what injection keeps there. */
static int open_memory(const struct spool_identity *identity)
{
    job_find(&dir.job, identity->world_size);
    struct spool_identity named = *identity;
    named.world = dir.job.world;
    named.job = dir.job.identity;
    int error = spool_create_in_memory(NULL, (uint64_t)config.max_mb << 20, &named);
    if (error && log_first_on_node())
        log_line("nothing is injected: there is no memory to be had (%s)", strerror(error));
    return !error;
}

/* LAPSCOPE_RECORD=job: in memory that the ranks of the node share. */
static int open_for_job(const struct spool_identity *identity)
{
    struct spool_identity named = *identity;
    const struct spool_memory *room = job_record_begin(&named);
    snprintf(dir.job.identity, sizeof dir.job.identity, "%s", room ? named.job : "");
    return room && spool_create_in_memory(room, JOB_SPOOL_BYTES, &named) == 0;
}

static int open_spool(const struct spool_identity *identity)
{
    if (config.record == CONFIG_RECORD_OFF)
        return open_memory(identity);
    if (config.record == CONFIG_RECORD_JOB)
        return open_for_job(identity);
    char trouble[RUNDIR_PATH_BYTES + 256] = "";
    int error = rundir_open(&dir, identity->rank, identity->world_size, trouble, sizeof trouble);
    if (error) { /* most often the same for all; the report counts the ranks that are missing */
        if (log_first_on_node())
            log_line("rank %d is not recorded: %s", identity->rank, trouble);
        return 0;
    }
    struct spool_identity named = *identity;
    named.world = dir.job.world;
    named.life = dir.life;
    named.job = dir.job.identity;
    named.launch = dir.job.launch;
    error = spool_create(dir.spool, (uint64_t)config.max_mb << 20, &named);
    if (error && dir.by_node) { /* the node's storage may be full */
        rundir_leave_node(&dir, identity->rank, error);
        named.life = dir.life;
        error = spool_create(dir.spool, (uint64_t)config.max_mb << 20, &named);
    }
    if (error)
        log_line("rank %d is not recorded: its spool %s cannot be made (%s); %s", identity->rank, dir.spool, strerror(error),
                 error == EFBIG ? "the limit on the size of files has to be higher (ulimit -f)"
                                : "LAPSCOPE_DIR or LAPSCOPE_SPOOL_DIR can name another place");
    return !error;
}

static int has_run_directory(void)
{
    return config.record == CONFIG_RECORD_SUMS || config.record == CONFIG_RECORD_ON;
}

static void watch_for_hangs(void)
{
    const struct spool_file_header *header = spool_header();
    struct watchdog_post post = {.run = dir.path,
                                 .rank = header->rank,
                                 .host = header->host,
                                 .limit_ns = (uint64_t)config.watchdog * 1000000000u};
    int error = config.watchdog && has_run_directory() ? watchdog_start(&post) : 0;
    if (error && log_first_on_node())
        log_line("rank %d: LAPSCOPE_WATCHDOG does nothing, as there is no thread to be had (%s)", header->rank, strerror(error));
}

static int is_wanted(void)
{
    return config.record != CONFIG_RECORD_OFF || config.inject != CONFIG_INJECT_OFF;
}

/* What is known of the process and of the run goes into the spool. */
static void write_facts(struct thread *t)
{
    if (config.record == CONFIG_RECORD_OFF) {
        nap_start();
        return;
    }
    if (config.record != CONFIG_RECORD_ON)
        spool_header()->summarized = SPOOL_FULL_ASKED;
    else
        device_start();
    facts_write(t, &dir.job);
    if (config.record == CONFIG_RECORD_JOB)
        job_record_start();
    else
        point_to_spool();
    spool_refresh_clock();
}

static void start(struct spool_clock_pair began, int64_t began_unix_ns, const struct recorder_place *place)
{
    if (!is_wanted())
        return;
    struct clock_shift shift;
    clock_shift_of(config.test_clock, place->rank, &shift);
    began = clock_pretend(shift, began);
    struct spool_identity identity = {.first = began,
                                      .epoch_unix_ns = began_unix_ns,
                                      .init_end = clock_now(),
                                      .rank = place->rank,
                                      .world_size = place->world_size,
                                      .thread_level = place->thread_level};
    recorder_multiple = place->thread_level == 3;
    if (!open_spool(&identity))
        return;
    if (*config.counters && config.record == CONFIG_RECORD_ON)
        counters_open(config.counters, log_first_on_node());
    stamps_are_plain = clock_is_tsc && !meters_wanted();
    struct thread *t = record_init_world(identity.world_size) ? thread_first_call() : NULL;
    if (!t) {
        if (config.record != CONFIG_RECORD_JOB)
            log_line("rank %d is not recorded: no room for the first records in %s", identity.rank, dir.spool);
        if (*dir.spool)
            unlink(dir.spool);
        return;
    }
    owner = getpid();
    own_stack_reserve();
    at_quick_exit(recorder_left);
    pthread_atfork(NULL, NULL, forget_in_child);
    sample_start(text_hash(dir.job.identity, strlen(dir.job.identity)));
    write_facts(t);
    recorder_state = RECORDER_ON;
    watch_for_hangs();
}

void recorder_start(struct spool_clock_pair began, int64_t began_unix_ns, const struct recorder_place *place)
{
    int saved_errno = errno;
    struct held held;
    held_begin(&held);
    start(began, began_unix_ns, place);
    held_end(&held);
    errno = saved_errno;
}

/* LAPSCOPE_RECORD=off leaves nothing behind of a run in which nothing was done, unless it was told where to. */
static const char *run_directory(int is_needed)
{
    char trouble[RUNDIR_PATH_BYTES + 256] = "";
    if (config.record == CONFIG_RECORD_JOB)
        return NULL; /* it stands in the record */
    if (config.record != CONFIG_RECORD_OFF || *dir.path)
        return dir.path;
    if (!is_needed && !*config.dir)
        return NULL;
    int world_size = spool_header()->world_size;
    struct held held;
    held_begin(&held);
    int error = rundir_make(&dir, world_size, trouble, sizeof trouble);
    held_end(&held);
    if (error && log_first_on_node())
        log_line("what was decided is not written down: %s", trouble);
    return error ? NULL : dir.path;
}

void recorder_know_world(void)
{
    MPI_Group world;
    struct thread *t = current_thread;
    if (!t || mpi.Comm_group(mpi.comm_world, &world) != MPI_SUCCESS)
        return;
    comm_set_world(world);
    comm_define(t, SCOPE(mpi.comm_world), "MPI_COMM_WORLD", NULL, 0);
    comm_define(t, SCOPE(mpi.comm_self), "MPI_COMM_SELF", NULL, 0);
    sends_start_record(t, text_hash(dir.job.identity, strlen(dir.job.identity)));
    inject_start(t, dir.job.identity, run_directory);
    reach_start(t);
    profile_start(t);
}

void recorder_all_ended(uint64_t began)
{
    spool_header()->finalize_begin = began;
    all_ended = 1;
}

void recorder_go_on(void)
{
    all_ended = 0;
    if (recorder_state != RECORDER_OFF)
        spool_header()->finalize_begin = 0;
}

/* Says where the data are: one rank of the job. */
static int is_speaker(const struct spool_file_header *header)
{
    return header->rank == 0 && header->world == 1 && !config.quiet;
}

/* As LAPSCOPE_CONVERT=off has it. */
static void leave_spool(const struct spool_file_header *header)
{
    if (is_speaker(header) && dir.by_node)
        log_line("data in %s, and of each node in its own storage; next, on each node: lapscope recover %s", dir.path, dir.path);
    else if (is_speaker(header))
        log_line("data in %s; next: lapscope report %s (turns the spools into SQLite first)", dir.path, dir.path);
}

static void say_not_converted(const char *error)
{
    int rank = spool_header()->rank, name_bytes = (int)(strlen(dir.database) - strlen(".db"));
    int has_run = access(dir.path, F_OK) == 0, has_spool = access(dir.spool, F_OK) == 0;
    if (has_run && has_spool)
        log_line("rank %d: %s. Nothing is lost: the spool stays, and `lapscope recover %s` converts it later", rank, error, dir.path);
    else if (has_spool) /* elsewhere: LAPSCOPE_SPOOL_DIR */
        log_line("rank %d: %s. Nothing is lost: `mkdir -p %s && mv %s %.*s.spool && lapscope recover %s` converts the spool", rank,
                 error, dir.path, dir.spool, name_bytes, dir.database, dir.path);
    else if (spool_is_removed())
        log_line("rank %d: %s. What it recorded is lost: somebody has removed %s while the program ran", rank, error, dir.path);
    else
        log_line("rank %d: %s. Nothing is lost: somebody has moved %s while the program ran, and `lapscope recover` with the name that "
                 "it has now converts it", rank, error, dir.path);
}

static void convert(void)
{
    char error[2 * RUNDIR_PATH_BYTES + 256] = "";
    struct store_result result;
    const struct spool_file_header *header = spool_header();
    if (config.record == CONFIG_RECORD_JOB)
        job_record_end();
    if (!has_run_directory())
        return;
    if (!config.convert) {
        leave_spool(header);
        return;
    }
    if (dir.by_node && header->end == SPOOL_ABORTED)
        return; /* the others are to end now, and not when a database is made of all their spools */
    if (dir.by_node) {
        last_rank_convert(&dir.node, config.quiet);
        return;
    }
    if (store_convert(dir.spool, dir.database, NULL, NULL, &result, error, sizeof error) != 0) {
        say_not_converted(error);
        return;
    }
    unlink(dir.spool);
    if (*config.spool_dir) {
        char path[RUNDIR_PATH_BYTES + 8];
        snprintf(path, sizeof path, "%.*s.spool-at", (int)(strlen(dir.database) - strlen(".db")), dir.database);
        unlink(path);
    }
    if (is_speaker(header))
        log_line("data in %s; rank 0 of %d: %llu requests, %llu calls, %llu lost; next: lapscope report %s", dir.path,
                 header->world_size, (unsigned long long)result.requests, (unsigned long long)result.calls,
                 (unsigned long long)result.lost, dir.path);
}

static void stop(void *argument)
{
    enum spool_end end = *(const enum spool_end *)argument;
    watchdog_end();
    inject_abandon();
    reach_abandon();
    profile_abandon();
    if (end == SPOOL_ABORTED)
        device_flush_at_end();
    device_stop();
    spool_finish(end);
    struct held held;
    held_begin(&held);
    convert();
    held_end(&held);
}

/* Two threads may end the process at once, and what one has to write would go with the other's end. Not for ever: that one may wait for
 * what this one holds. */
static void wait_for_stopper(void)
{
    enum { WAITS = 2000 };
    for (int i = 0; i < WAITS && __atomic_load_n(&stopper, __ATOMIC_ACQUIRE) != HAS_STOPPED; i++)
        pause_1_ms();
}

static void stop_once(enum spool_end end)
{
    pid_t self = (pid_t)syscall(SYS_gettid), before = NOBODY;
    if (!__atomic_compare_exchange_n(&stopper, &before, self, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        if (before != self) /* else a signal has come meanwhile, whose handler ends the process */
            wait_for_stopper();
        return;
    }
    __atomic_store_n(&recorder_state, RECORDER_OFF, __ATOMIC_RELEASE);
    own_stack_call(stop, &end);
    __atomic_store_n(&stopper, HAS_STOPPED, __ATOMIC_RELEASE);
}

void recorder_stop(enum spool_end end)
{
    int saved_errno = errno, cancel_state = uncancelled_begin();
    int is_off = __atomic_load_n(&recorder_state, __ATOMIC_ACQUIRE) == RECORDER_OFF;
    if (owner == getpid() && (!is_off || __atomic_load_n(&stopper, __ATOMIC_RELAXED) != NOBODY))
        stop_once(end);
    uncancelled_end(cancel_state);
    errno = saved_errno;
}

/* Also called in children of vfork, which share our memory: hence the owner. */
void recorder_left(void)
{
    if (recorder_state == RECORDER_OFF || owner != getpid() || spool_header()->end != SPOOL_OPEN)
        return;
    spool_left(all_ended ? SPOOL_FINALIZED : SPOOL_EXITED);
}

/* exit() without MPI_Finalize, or behind the last session */
static __attribute__((destructor)) void at_exit(void)
{
    recorder_stop(all_ended ? SPOOL_FINALIZED : SPOOL_EXITED);
}
