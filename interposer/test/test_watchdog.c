/* LAPSCOPE_WATCHDOG: when a line is said and when not, who says it, and that the thread ends. */
#define _GNU_SOURCE
#include "bring_up.h"
#include "check.h"

#include "../recorder/base/call.h"
#include "../recorder/record/watchdog.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LIMIT_MS = 200, LONG_MS = 3 * LIMIT_MS, PATIENCE_MS = 20000 };

static char run[64], said[96], marked[96];
static struct thread *self;

static void sleep_ms(int ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000L}, NULL);
}

/* All that was said so far. */
static const char *lines(void)
{
    static char text[4096];
    FILE *file = fopen(said, "r");
    size_t bytes = file ? fread(text, 1, sizeof text - 1, file) : 0;
    text[bytes] = '\0';
    if (file)
        fclose(file);
    return text;
}

static int line_count(void)
{
    int count = 0;
    for (const char *at = lines(); (at = strchr(at, '\n')); at++)
        count++;
    return count;
}

static int comes_to(int count)
{
    for (int waited = 0; line_count() < count && waited < PATIENCE_MS; waited += 20)
        sleep_ms(20);
    return line_count() == count;
}

static unsigned thread_total(void)
{
    unsigned count = 0;
    DIR *directory = opendir("/proc/self/task");
    for (struct dirent *entry; directory && (entry = readdir(directory));)
        count += *entry->d_name != '.';
    if (directory)
        closedir(directory);
    return count;
}

static void call_ends(int is_unsuccessful_test)
{
    if (is_unsuccessful_test)
        __atomic_fetch_add(&self->state->unsuccessful_tests, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&self->state->calls, 1, __ATOMIC_RELAXED);
}

static void start(void)
{
    struct watchdog_post post = {run, 3, "node17", LIMIT_MS * UINT64_C(1000000)};
    CHECK_EQUAL(watchdog_start(&post), 0);
}

/* The thread is gone when the application goes on, or soon after. */
static void end(void)
{
    watchdog_end();
    for (int waited = 0; thread_total() > 1 && waited < PATIENCE_MS; waited += 10)
        sleep_ms(10);
    CHECK_EQUAL(thread_total(), 1);
    CHECK(access(marked, F_OK) != 0);
}

static void forget_lines(void)
{
    CHECK_EQUAL(truncate(said, 0), 0);
}

/* Once for each hang, in which nothing but tests that find nothing may end. */
static void test_once_for_each_hang(void)
{
    start();
    self->state->current_call = CALL_MPI_Waitall;
    self->state->current_begin = clock_now();
    __atomic_store_n(&self->state->current_operation, 7, __ATOMIC_RELEASE);
    CHECK(comes_to(1));
    CHECK(strstr(lines(), "lapscope: rank 3 (node17, pid ") == lines());
    CHECK(strstr(lines(), ") hangs: no MPI call of it has ended for ") != NULL);
    CHECK(strstr(lines(), " s; inside MPI_Waitall for ") != NULL);
    CHECK(access(marked, F_OK) == 0);
    sleep_ms(LONG_MS);
    CHECK_EQUAL(line_count(), 1);
    __atomic_store_n(&self->state->current_operation, 0, __ATOMIC_RELEASE);
    call_ends(0);
    CHECK(comes_to(2));
    CHECK(strstr(lines(), "; outside MPI. What the ranks wait for says: lapscope hang ") != NULL);
    call_ends(0);
    for (int passed = 0; line_count() < 3 && passed < PATIENCE_MS; passed += 20, sleep_ms(20))
        call_ends(1);
    CHECK_EQUAL(line_count(), 3);
    CHECK(strstr(lines(), "; it tests, and nothing is complete. ") != NULL);
    end();
    forget_lines();
}

/* Calls that end, MPI_Pcontrol(0), and MPI that is over. */
static void test_no_hang(void)
{
    uint64_t longest = 0; /* in which nothing ended, as the machine did something else */
    start();
    for (int i = 0; i < LONG_MS / 10; i++) {
        uint64_t before = clock_nanoseconds(CLOCK_MONOTONIC);
        call_ends(0);
        sleep_ms(10);
        uint64_t passed = clock_nanoseconds(CLOCK_MONOTONIC) - before;
        longest = passed > longest ? passed : longest;
    }
    __atomic_store_n(&recorder_state, RECORDER_PAUSED, __ATOMIC_RELAXED);
    sleep_ms(LONG_MS);
    __atomic_store_n(&spool_header()->finalize_begin, clock_now(), __ATOMIC_RELAXED);
    __atomic_store_n(&recorder_state, RECORDER_ON, __ATOMIC_RELAXED);
    sleep_ms(LONG_MS);
    if (longest < LIMIT_MS * UINT64_C(500000))
        CHECK_EQUAL(line_count(), 0);
    forget_lines();
    self->state->current_call = CALL_MPI_Finalize; /* in which a rank may hang, too */
    self->state->current_begin = clock_now();
    __atomic_store_n(&self->state->current_operation, 7, __ATOMIC_RELEASE);
    CHECK(comes_to(1));
    CHECK(strstr(lines(), "inside MPI_Finalize") != NULL);
    end();
    self->state->current_operation = 0;
    spool_header()->finalize_begin = 0;
    forget_lines();
}

/* Of a job whose ranks all hang only one says so, until that one goes on. */
static void test_another_has_said_it(void)
{
    int fd = open(marked, O_WRONLY | O_CREAT | O_EXCL, 0600);
    CHECK(fd >= 0);
    close(fd);
    start();
    sleep_ms(2 * LIMIT_MS);
    CHECK_EQUAL(line_count(), 0);
    CHECK_EQUAL(unlink(marked), 0);
    CHECK(comes_to(1));
    end();
    forget_lines();
}

/* Where nothing can be written the first rank of a node says it; those that come later are silent. */
static void test_no_mark(void)
{
    struct watchdog_post post = {"/nowhere/it's here", 3, "node17", LIMIT_MS * UINT64_C(1000000)};
    setenv("OMPI_COMM_WORLD_LOCAL_RANK", "1", 1);
    CHECK_EQUAL(watchdog_start(&post), 0);
    sleep_ms(LONG_MS);
    CHECK_EQUAL(line_count(), 0);
    end();
    setenv("OMPI_COMM_WORLD_LOCAL_RANK", "0", 1);
    CHECK_EQUAL(watchdog_start(&post), 0);
    CHECK(comes_to(1));
    CHECK(strstr(lines(), "lapscope hang '/nowhere/it'\\''s here'\n") != NULL);
    end();
    unsetenv("OMPI_COMM_WORLD_LOCAL_RANK");
    forget_lines();
}

static volatile sig_atomic_t handled_here;

static void handle(int number)
{
    (void)number;
    handled_here = (int)(getpid() == gettid());
}

/* A signal to the process is for the application's threads. */
static void test_signals(void)
{
    sigset_t one, before;
    sigemptyset(&one);
    sigaddset(&one, SIGUSR1);
    signal(SIGUSR1, handle);
    start();
    pthread_sigmask(SIG_BLOCK, &one, &before);
    kill(getpid(), SIGUSR1);
    sleep_ms(LIMIT_MS / 2);
    CHECK_EQUAL(handled_here, 0);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    CHECK_EQUAL(handled_here, 1);
    end();
}

/* A program whose threads have all ended by pthread_exit() has ended, although nobody called exit(). */
static void test_last_thread(void)
{
    pid_t child = fork();
    int status = -1;
    if (child == 0) {
        start();
        pthread_exit(NULL);
    }
    for (int waited = 0; waitpid(child, &status, WNOHANG) == 0 && waited < PATIENCE_MS; waited += 10)
        sleep_ms(10);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    if (!WIFEXITED(status))
        kill(child, SIGKILL);
}

int main(void)
{
    strcpy(run, "/tmp/lapscope-test-XXXXXX");
    self = bring_up();
    recorder_state = RECORDER_ON;
    if (!mkdtemp(run))
        return 2;
    snprintf(said, sizeof said, "%s/said", run);
    snprintf(marked, sizeof marked, "%s/.watchdog", run);
    int error = dup(STDERR_FILENO), log = open(said, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    dup2(log, STDERR_FILENO);
    call_ends(0);
    test_last_thread();
    test_once_for_each_hang();
    test_no_hang();
    test_another_has_said_it();
    test_no_mark();
    test_signals();
    dup2(error, STDERR_FILENO);
    unlink(said);
    rmdir(run);
    tear_down();
    return check_summary();
}
