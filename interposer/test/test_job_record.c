/*
 * LAPSCOPE_RECORD=job without MPI: the table of sums, ranks of a node that meet, and the record that they leave, whatever happens to
 * them.
 */
#define _GNU_SOURCE
#include "bring_up.h"
#include "check.h"

#include "../recorder/base/call.h"
#include "../recorder/base/config.h"
#include "../recorder/node/job_record.h"
#include "../recorder/node/job_text.h"
#include "../recorder/node/meeting.h"
#include "../recorder/node/node_sums.h"
#include "../recorder/record/cells.h"
#include "../recorder/record/tally.h"
#include "../recorder/record/path.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 1 << 16, RANKS = 3, MANY_RANKS = 300 };

static const uint64_t SECOND_NS = 1000000000, WEEK_NS = UINT64_C(7) * 86400 * 1000000000;

/* --- the table of sums -------------------------------------------------------------------------------------------- */

static struct tally_key key_of(unsigned path)
{
    return (struct tally_key){CALL_MPI_Isend + 1, 10, SPOOL_TALLY_SUMMARY, path};
}

/* Heavy sites among many light ones, the light ones in another order each time. */
static void test_heavy_sites_stay(void)
{
    enum { HEAVY = 50, LIGHT = 20000, HEAVY_TICKS = 1000000 };
    bring_up();
    struct cells *cells = cells_create(0);
    uint64_t seed = 7, light = 0, kept = 0, wrong = 0, all = 0;
    for (int i = 0; i < 200000; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        unsigned is_heavy = i % 20 == 0, path = is_heavy ? 1 + (unsigned)i / 20 % HEAVY : 1000 + (unsigned)(seed >> 33) % LIGHT;
        struct spool_tally *tally = cells_find(cells, key_of(path));
        tally->count++;
        tally->inside_ticks += is_heavy ? HEAVY_TICKS : 10;
        light += is_heavy ? 0 : 10;
    }
    for (unsigned path = 1; path <= HEAVY; path++) {
        const struct spool_cell *cell = cell_of(cells_find(cells, key_of(path)));
        kept += cell->sums.inside_ticks == UINT64_C(200) * HEAVY_TICKS;
        wrong += cell->error_ticks != 0; /* each was there before the table was full */
    }
    CHECK_EQUAL(kept, HEAVY);
    CHECK_EQUAL(wrong, 0);
    const struct spool_cell *rest = cell_of(cells_find(cells, (struct tally_key){CALL_MPI_Isend + 1, SPOOL_CELL_REST, SPOOL_TALLY_SUMMARY, 0}));
    CHECK(rest->sums.inside_ticks > light / 2);
    for (unsigned path = 1000; path < 1000 + LIGHT; path += 7) { /* what comes anew says how much it may have had: no less than it had */
        const struct spool_cell *cell = cell_of(cells_find(cells, key_of(path)));
        all += cell->error_ticks > 0 || cell->sums.count > 0;
        wrong += cell->error_ticks > 100000;
    }
    CHECK_EQUAL(all, (LIGHT + 6) / 7);
    CHECK_EQUAL(wrong, 0);
}

/* Whatever is folded stays in the sum of its function. */
static void test_nothing_is_lost(void)
{
    enum { PATHS = 5000 };
    struct cells *cells = cells_create(0);
    uint64_t sum = 0;
    for (unsigned i = 0; i < 3 * PATHS; i++) {
        struct spool_tally *tally = cells_find(cells, key_of(1 + i % PATHS));
        tally->count++;
        tally->bytes += 512;
        tally->inside_ticks += i;
        sum += i;
    }
    for (unsigned i = 1; i < 5 * PATHS; i++) /* until all of them have been folded */
        cells_find(cells, key_of(2 * PATHS + i))->inside_ticks = sum + i;
    const struct spool_cell *rest = cell_of(cells_find(cells, (struct tally_key){CALL_MPI_Isend + 1, SPOOL_CELL_REST, SPOOL_TALLY_SUMMARY, 0}));
    CHECK_EQUAL(rest->sums.count, 3 * PATHS);
    CHECK_EQUAL(rest->sums.bytes, 3 * PATHS * 512);
    CHECK(rest->sums.inside_ticks > sum);
}

/* A week at a call a microsecond, and what no run can have. */
static void test_long_runs(void)
{
    struct spool_cell into = {.sums = {.count = UINT64_C(604800000000), .inside_ticks = UINT64_MAX - 5}}, more = into;
    more.waiting = 1;
    more.least_bytes_waiting = 7;
    spool_cell_add(&into, &more);
    CHECK_EQUAL(into.sums.count, UINT64_C(1209600000000));
    CHECK_EQUAL(into.sums.inside_ticks, UINT64_MAX);
    CHECK_EQUAL(into.least_bytes_waiting, 7);
    struct spool_file_header header = {.nominal_ticks_per_ns = 3.0, .first = {1000, 0}};
    struct rank_view view = {.header = &header, .ns_per_tick = ((uint64_t)1 << 56) / 3};
    uint64_t week = 3 * WEEK_NS;
    CHECK((uint64_t)rank_view_moment_ns(&view, 1000 + week) - WEEK_NS + 1000 < 2000);
    CHECK_EQUAL(rank_view_moment_ns(&view, 1), 0);
    CHECK_EQUAL(rank_view_ns(&view, UINT64_MAX), INT64_C(1) << 60);
}

static void test_text(void)
{
    char bytes[64];
    struct job_text text = {.begin = bytes, .bytes = sizeof bytes};
    job_put_text(&text, "a\tb\\c\n\x1b", '\t');
    job_put_number(&text, INT64_MIN + 1, '\t');
    job_put_number(&text, JOB_NULL, '\t');
    job_put_number(&text, 0, '\n');
    bytes[text.used] = '\0';
    CHECK_TEXT(bytes, "a\\tb\\\\c\\n\\x1b\t-9223372036854775807\t\t0\n");
    job_put(&text, "that this does not fit is seen, and nothing is written behind the end");
    CHECK(text.is_cut);
}

/* --- records ------------------------------------------------------------------------------------------------------ */

static char directory[64], page[PAGE + 1];

/* The only record in the directory, in `page`; returns its length, 0 when there is none. */
static size_t read_record(void)
{
    char path[512];
    size_t length = 0;
    unsigned records = 0;
    DIR *listing = opendir(directory);
    for (const struct dirent *entry; listing && (entry = readdir(listing));) {
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
            continue;
        records++;
        snprintf(path, sizeof path, "%s/%s", directory, entry->d_name);
        int fd = open(path, O_RDONLY);
        ssize_t got = read(fd, page, PAGE);
        close(fd);
        length = got > 0 ? (size_t)got : 0;
    }
    if (listing)
        closedir(listing);
    CHECK(records <= 1);
    page[length] = '\0';
    return records ? length : 0;
}

static unsigned count_of(const char *word)
{
    unsigned count = 0;
    for (const char *at = page; (at = strstr(at, word)); at += strlen(word))
        count++;
    return count;
}

/* As a recorder begins. Returns 0 when there is nothing to record into. */
static int begin(int rank, int size)
{
    struct spool_identity identity = {.rank = rank, .world_size = size, .first = clock_pair(), .epoch_unix_ns = (int64_t)clock_nanoseconds(CLOCK_REALTIME)};
    identity.init_end = clock_now();
    const struct spool_memory *room = job_record_begin(&identity);
    if (!room || spool_create_in_memory(room, 512 << 10, &identity) != 0)
        return 0;
    recorder_state = RECORDER_ON;
    struct thread *t = thread_first_call();
    if (!t || !t->cells)
        return 0;
    job_record_start();
    return 1;
}

/* So many sites, the first with a second in each of two sizes. */
static void communicate(unsigned sites)
{
    struct thread *t = current_thread;
    uint64_t second = clock_ticks(SECOND_NS, spool_header()->nominal_ticks_per_ns);
    for (unsigned i = 0; i < sites; i++) {
        uintptr_t frames[] = {(uintptr_t)&communicate + i % 200, (uintptr_t)&begin + i / 200};
        struct spool_tally *tally = tally_find(t, CALL_MPI_Send, path_define(t, frames, 2), i ? 8 : 4096, SPOOL_TALLY_SUMMARY);
        tally->count += 10;
        tally->bytes += 10 * (i ? 8 : 4096);
        tally->inside_ticks += i ? 1000 : second;
    }
}

/* Programs close what is not theirs. */
static void close_all_but(int gate)
{
    for (int fd = 3; fd < 1024; fd++)
        if (fd != gate)
            close(fd);
}

static void end(enum spool_end how)
{
    spool_header()->finalize_begin = clock_now();
    spool_finish(how);
    job_record_end();
}

static int ranks_close_descriptors;

/* A rank as a process of its own. `how`: 0: it is killed. */
static pid_t start_rank(int rank, int size, unsigned sites, enum spool_end how, int gate)
{
    pid_t pid = fork();
    if (pid)
        return pid;
    char byte;
    int is_in = begin(rank, size);
    if (is_in)
        communicate(sites);
    if (is_in && how == SPOOL_OPEN)
        raise(SIGKILL);
    if (read(gate, &byte, 1) != 1 || !is_in)
        _exit(!is_in);
    if (ranks_close_descriptors)
        close_all_but(gate);
    end(how);
    _exit(0);
}

static void run(int ranks, unsigned sites, enum spool_end last)
{
    int gate[2];
    pid_t pids[MANY_RANKS];
    char bytes[MANY_RANKS] = "";
    CHECK(pipe(gate) == 0);
    for (int i = 0; i < ranks; i++) {
        pids[i] = start_rank(i, ranks, sites, i == ranks - 1 ? last : SPOOL_FINALIZED, gate[0]);
        while (i == 0 && read_record() == 0) /* so that rank 0 is the first */
            usleep(1000);
    }
    usleep(200000);
    for (int i = ranks; i-- > 0;) { /* one after the other */
        CHECK(write(gate[1], bytes, 1) == 1);
        usleep(ranks > RANKS ? 0 : 20000);
    }
    for (int i = 0; i < ranks; i++)
        waitpid(pids[i], NULL, 0);
    close(gate[0]);
    close(gate[1]);
}

static void clear(void)
{
    char command[256];
    snprintf(command, sizeof command, "rm -rf %s && mkdir %s", directory, directory);
    CHECK(system(command) == 0);
}

static void test_ranks_are_put_together(void)
{
    clear();
    run(RANKS, 5, SPOOL_FINALIZED);
    size_t length = read_record();
    CHECK(length > 1000 && length < PAGE);
    CHECK(!strncmp(page, "lapscope job record 1\n[keeper]\n", 31));
    CHECK(length > 6 && !strcmp(page + length - 6, "[end]\n"));
    CHECK_EQUAL(count_of("\tfinalize\t"), RANKS);
    CHECK_EQUAL(count_of("\nMPI_Send\t"), 5);
    CHECK_EQUAL(count_of("\t1\n[setting]\n"), 1); /* is_last */
    unsigned long long count = 0, bytes = 0, inside = 0;
    const char *site = strstr(page, "\nMPI_Send\t");
    CHECK(site && sscanf(site, " MPI_Send\t%*d\tsummary\t13\t%llu\t%llu\t%llu", &count, &bytes, &inside) == 3);
    CHECK_EQUAL(count, 10 * RANKS);
    CHECK_EQUAL(bytes, 40960 * RANKS);
    CHECK(inside > 999 * RANKS * SECOND_NS / 1000 && inside < 1001 * RANKS * SECOND_NS / 1000);
}

static void test_without_descriptors(void)
{
    clear();
    ranks_close_descriptors = 1;
    run(RANKS, 5, SPOOL_FINALIZED);
    ranks_close_descriptors = 0;
    CHECK(read_record() > 1000);
    CHECK_EQUAL(count_of("\tfinalize\t"), RANKS);
    CHECK_EQUAL(count_of("\nMPI_Send\t"), 5);
    CHECK_EQUAL(count_of("\t1\n[setting]\n"), 1); /* is_last */
}

/* Who dies between meeting_lock and meeting_unlock keeps nobody out. */
static void test_a_lock_is_left_behind(void)
{
    struct attendance own;
    struct meeting_keeper keeper;
    CHECK_EQUAL(meeting_make(&own, "job", ""), 0);
    meeting_describe(&own, &keeper);
    pid_t pid = fork();
    if (!pid) {
        struct attendance other;
        _exit(meeting_join(&other, &keeper, "job", "") != 0 || !meeting_lock(&other));
    }
    int status = -1;
    waitpid(pid, &status, 0);
    CHECK_EQUAL(status, 0);
    CHECK(meeting_lock(&own));
    CHECK(!meeting_lock(&own));
    meeting_unlock(&own);
    CHECK(meeting_lock(&own));
    meeting_forget(&own);
}

/* A rank that has no descriptor to look with does not take the lock of one that lives, nor take that for gone. */
static void test_who_cannot_look_takes_no_lock(void)
{
    struct attendance own;
    struct meeting_keeper keeper;
    struct rlimit before, none;
    CHECK_EQUAL(meeting_make(&own, "job", ""), 0);
    meeting_describe(&own, &keeper);
    int status = -1, done[2], held[2];
    char byte = 0;
    CHECK(pipe(done) == 0 && pipe(held) == 0);
    pid_t pid = fork();
    if (!pid) {
        struct attendance other;
        byte = (char)(meeting_join(&other, &keeper, "job", "") == 0 && meeting_lock(&other));
        close(done[1]);
        _exit(write(held[1], &byte, 1) != 1 || read(done[0], &byte, 1) != 0);
    }
    close(done[0]);
    CHECK(read(held[0], &byte, 1) == 1 && byte);
    getrlimit(RLIMIT_NOFILE, &before);
    none = (struct rlimit){.rlim_cur = 0, .rlim_max = before.rlim_max};
    setrlimit(RLIMIT_NOFILE, &none);
    int is_taken = meeting_lock(&own), is_alive = meeting_is_alive(&own, 1);
    setrlimit(RLIMIT_NOFILE, &before);
    CHECK(!is_taken && is_alive);
    close(done[1]);
    waitpid(pid, &status, 0);
    CHECK_EQUAL(status, 0);
    CHECK(meeting_lock(&own) && !meeting_is_alive(&own, 1));
    close(held[0]);
    close(held[1]);
    meeting_forget(&own);
}

/* --- call paths --------------------------------------------------------------------------------------------------- */

enum { OUTER_FRAMES = 6 };

static struct spool_tally *tally_at(uintptr_t address)
{
    uintptr_t frames[1 + OUTER_FRAMES];
    for (unsigned i = 0; i <= OUTER_FRAMES; i++)
        frames[i] = i ? 0x1000000 * i + address / 16 / (1u << i) : address;
    return tally_find(current_thread, CALL_MPI_Send, path_define(current_thread, frames, 1 + OUTER_FRAMES), 8, SPOOL_TALLY_SUMMARY);
}

/* Whether the record has the frame at that address, and a site of so many seconds at it. */
static int has_site_at(uintptr_t address, unsigned seconds)
{
    long frame = 0, id, number;
    unsigned long long inside;
    const char *row = strstr(page, "[frame]\n"), *sites = strstr(page, "[site]\n");
    for (; row && row < sites && !frame; row = strchr(row + 1, '\n'))
        if (sscanf(row, "\n%ld\t%*d\t\t%ld", &id, &number) == 2 && (uintptr_t)number == address)
            frame = id;
    for (row = strstr(sites, "\nMPI_Send\t"); row && frame; row = strstr(row + 1, "\nMPI_Send\t"))
        if (sscanf(row, "\nMPI_Send\t%ld\tsummary\t%*d\t%*u\t%*u\t%llu", &id, &inside) == 2 && id == frame)
            return inside / (SECOND_NS / 100) >= 99u * seconds;
    return 0;
}

/* The heaviest sites come last, and behind them many light ones once more: their frames are in the record, and the time of the light
 * ones is in the sum of the function. */
static void test_heavy_sites_have_their_places(void)
{
    enum { LIGHT = 20000, HEAVY = 20, FIRST_HEAVY = 0x40000000 };
    clear();
    pid_t pid = fork();
    if (!pid) {
        if (!begin(0, 1))
            _exit(1);
        uint64_t second = clock_ticks(SECOND_NS, spool_header()->nominal_ticks_per_ns);
        unsigned chunks = spool_header()->chunks;
        for (unsigned i = 0; i < 3 * LIGHT; i++) {
            unsigned heavy = i % LIGHT - (LIGHT - HEAVY), is_heavy = heavy < HEAVY && i < 2 * LIGHT;
            struct spool_tally *tally = tally_at(is_heavy ? FIRST_HEAVY + 16 * heavy : 0x1000 + 16 * (i % LIGHT));
            tally->count++;
            tally->inside_ticks += is_heavy ? second : 1000;
        }
        end(SPOOL_FINALIZED);
        _exit(spool_header()->chunks != chunks); /* nor does memory grow */
    }
    int status = -1;
    waitpid(pid, &status, 0);
    CHECK_EQUAL(status, 0);
    CHECK(read_record() > PAGE / 4);
    for (unsigned i = 0; i < HEAVY; i++)
        CHECK(has_site_at(FIRST_HEAVY + 16 * i, 2));
}

/* Ranks have other sites each, more together than a node keeps: that of the last one is heavy. */
static void test_heavy_sites_of_late_ranks(void)
{
    enum { MANY = 8, LIGHT = 1000, HEAVY = 0x40000000 };
    clear();
    for (int rank = 0; rank < MANY; rank++) {
        while (rank == 1 && read_record() == 0)
            usleep(1000);
        usleep(rank == MANY - 1 ? 500000 : 0); /* so that it comes last */
        if (fork())
            continue;
        if (!begin(rank, MANY))
            _exit(1);
        uint64_t second = clock_ticks(SECOND_NS, spool_header()->nominal_ticks_per_ns);
        for (unsigned i = 0; i <= LIGHT; i++) {
            int is_heavy = i == LIGHT && rank == MANY - 1;
            struct spool_tally *tally = tally_at(is_heavy ? HEAVY : 0x1000 + 16 * (i + LIGHT * (unsigned)rank));
            tally->count++;
            tally->inside_ticks += is_heavy ? second : 1000;
        }
        usleep(1500000);
        end(SPOOL_FINALIZED);
        _exit(0);
    }
    while (wait(NULL) > 0)
        continue;
    CHECK(read_record() > PAGE / 4);
    CHECK(has_site_at(HEAVY, 1));
}

/* The mode of a record in a directory of this mode. */
static unsigned mode_in(unsigned mode)
{
    char command[256];
    unsigned found = 0;
    clear();
    CHECK(chmod(directory, mode) == 0);
    run(1, 5, SPOOL_FINALIZED);
    snprintf(command, sizeof command, "stat -c %%a %s/*.lapscope-job", directory);
    FILE *said = popen(command, "r");
    CHECK(said && fscanf(said, "%o", &found) == 1);
    pclose(said);
    return found;
}

static void test_who_may_read_it(void)
{
    CHECK_EQUAL(mode_in(0755), 0600);
    CHECK_EQUAL(mode_in(01733), 0600);
    CHECK_EQUAL(mode_in(02750), 0640);
}

static void test_a_killed_rank_counts(void)
{
    clear();
    run(RANKS, 5, SPOOL_OPEN);
    CHECK(read_record() > 1000);
    CHECK_EQUAL(count_of("\tfinalize\t"), RANKS - 1);
    CHECK_EQUAL(count_of("\tkilled\t"), 1);
    CHECK_EQUAL(count_of("\t1\n[setting]\n"), 1);
    unsigned long long count = 0;
    const char *site = strstr(page, "\nMPI_Send\t");
    CHECK(site && sscanf(site, " MPI_Send\t%*d\tsummary\t13\t%llu", &count) == 1);
    CHECK_EQUAL(count, 10 * RANKS);
}

static void test_it_stays_small(void)
{
    clear();
    run(64, 2000, SPOOL_FINALIZED);
    size_t length = read_record();
    CHECK(length > PAGE / 2 && length <= PAGE);
    CHECK_EQUAL(count_of("\tfinalize\t"), 64);
    unsigned long long sum = 0;
    for (const char *at = page; (at = strstr(at, "\nMPI_Send\t")); at++) {
        unsigned long long count = 0;
        sscanf(strstr(at, "summary\t"), "summary\t%*d\t%llu", &count);
        sum += count;
    }
    CHECK_EQUAL(sum, 64 * 2000 * 10); /* those without a row of their own are in that of the function */
}

static void test_without_a_directory(void)
{
    char command[256];
    snprintf(command, sizeof command, "rm -rf %s", directory);
    CHECK(system(command) == 0);
    pid_t pid = fork();
    if (!pid)
        _exit(begin(0, 1));
    int status = 0;
    waitpid(pid, &status, 0);
    CHECK_EQUAL(status, 0);
    CHECK_EQUAL(access(directory, F_OK), -1);
}

/* The directory goes while the job runs, and a limit on the size of files comes: the rank ends as it would. */
static void test_trouble_is_kept_from_the_program(void)
{
    clear();
    pid_t pid = fork();
    if (!pid) {
        char command[256];
        int is_in = begin(0, 1);
        if (is_in)
            communicate(5);
        snprintf(command, sizeof command, "rm -rf %s", directory);
        is_in = is_in && system(command) == 0;
        setrlimit(RLIMIT_FSIZE, &(struct rlimit){10, 10});
        signal(SIGXFSZ, SIG_IGN);
        if (is_in)
            end(SPOOL_FINALIZED);
        _exit(!is_in);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    CHECK_EQUAL(status, 0);
}

int main(void)
{
    strcpy(directory, "/tmp/lapscope-test-XXXXXX");
    CHECK(mkdtemp(directory) != NULL);
    test_heavy_sites_stay();
    test_nothing_is_lost();
    test_long_runs();
    test_text();
    tear_down();
    setenv("LAPSCOPE_RECORD", "job", 1);
    setenv("LAPSCOPE_DIR", directory, 1);
    setenv("PMIX_NAMESPACE", "of-test", 1);
    config_load(1);
    recorder_state = RECORDER_OFF;
    current_thread = NULL;
    thread_count = 0;
    test_ranks_are_put_together();
    test_without_descriptors();
    test_a_lock_is_left_behind();
    test_who_cannot_look_takes_no_lock();
    test_heavy_sites_have_their_places();
    test_heavy_sites_of_late_ranks();
    test_who_may_read_it();
    test_a_killed_rank_counts();
    test_it_stays_small();
    test_without_a_directory();
    test_trouble_is_kept_from_the_program();
    char command[256];
    snprintf(command, sizeof command, "rm -rf %s", directory);
    CHECK(system(command) == 0);
    return check_summary();
}
