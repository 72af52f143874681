/* Jobs and worlds as launchers tell them: variables as each of them sets them, and Hydra's proxy as an ancestor. */
#define _GNU_SOURCE
#include "check.h"

#include "../recorder/base/config.h"
#include "../recorder/base/held.h"
#include "../recorder/base/log.h"
#include "../recorder/base/rundir.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LIBRARY_BYTES = 4096 };

char *mpi_of_test_memory(void);

static struct job found;

/* Looks with these variables in an environment without others: name, value, ..., NULL. */
static void look(int world_size, const char *const variables[])
{
    clearenv();
    for (; *variables; variables += 2)
        setenv(variables[0], variables[1], 1);
    job_find(&found, world_size);
}

#define LOOK(...) look(16, (const char *const[]){__VA_ARGS__, NULL})
#define LOOK_ALONE(...) look(1, (const char *const[]){__VA_ARGS__, NULL})

static void test_open_mpi_4(void)
{
    LOOK("PMIX_NAMESPACE", "1978269697", "OMPI_MCA_orte_precondition_transports", "ab-cd");
    CHECK_TEXT(found.identity, "1978269697.ab-cd");
    CHECK_EQUAL(found.world, 1);
    LOOK("PMIX_NAMESPACE", "1978269699", "OMPI_MCA_orte_precondition_transports", "ab-cd", "OMPI_PARENT_PORT", "1978269698.0:8");
    CHECK_TEXT(found.identity, "1978269697.ab-cd");
    CHECK_EQUAL(found.world, 3);
    /* a further launch by a server that stays: nobody's child */
    LOOK("PMIX_NAMESPACE", "1978269699", "OMPI_MCA_orte_precondition_transports", "ef-01");
    CHECK_TEXT(found.identity, "1978269699.ef-01");
    CHECK_EQUAL(found.world, 1);
}

static void test_open_mpi_5(void)
{
    LOOK("PMIX_NAMESPACE", "prterun-vm-893@1");
    CHECK_TEXT(found.identity, "prterun-vm-893@1");
    CHECK_EQUAL(found.world, 1);
    LOOK("PMIX_NAMESPACE", "prterun-vm-893@12", "OMPI_PARENT_PORT", "309592065.0:1");
    CHECK_TEXT(found.identity, "prterun-vm-893@1");
    CHECK_EQUAL(found.world, 12);
    LOOK("PMIX_NAMESPACE", "prte-vm-77@3"); /* a server that stays numbers launches, too */
    CHECK_TEXT(found.identity, "prte-vm-77@3");
    CHECK_EQUAL(found.world, 1);
}

static void test_other_launchers(void)
{
    LOOK("I_MPI_HYDRA_UUID", "142b-aa", "HYDRA_BSTRAP_PGID", "0");
    CHECK_TEXT(found.identity, "142b-aa");
    CHECK_EQUAL(found.world, 1);
    LOOK("I_MPI_HYDRA_UUID", "142b-aa", "HYDRA_BSTRAP_PGID", "4", "PMI_SPAWNED", "1");
    CHECK_EQUAL(found.world, 5);
    LOOK("SLURM_JOB_ID", "17", "SLURM_STEP_ID", "2");
    CHECK_TEXT(found.identity, "17.2");
    CHECK_EQUAL(found.world, 1);
    LOOK("SLURM_JOB_ID", "17", "SLURM_STEP_ID", "4294967290"); /* the same, of an interactive allocation */
    CHECK(!strncmp(found.identity, "pid-", 4));
    LOOK("SLURM_JOB_ID", "17"); /* in the allocation's own shell: no step, hence no job */
    CHECK(!strncmp(found.identity, "pid-", 4));
    CHECK_EQUAL(found.world, 1);
}

/* Processes that were started together and do not know of each other. */
static void test_alone(void)
{
    LOOK_ALONE("PMIX_NAMESPACE", "slurm.pmix.7.0", "SLURM_JOB_ID", "7", "SLURM_STEP_ID", "0", "SLURM_STEP_NUM_TASKS", "4",
               "SLURM_PROCID", "2");
    CHECK_TEXT(found.identity, "slurm.pmix.7.0");
    CHECK(found.is_alone);
    CHECK_EQUAL(found.world, 3);
    LOOK("SLURM_JOB_ID", "7", "SLURM_STEP_ID", "0", "SLURM_STEP_NUM_TASKS", "16", "SLURM_PROCID", "2");
    CHECK(!found.is_alone);
    CHECK_EQUAL(found.world, 1);
    LOOK_ALONE("SLURM_JOB_ID", "7", "SLURM_STEP_ID", "0", "SLURM_STEP_NUM_TASKS", "1", "SLURM_PROCID", "0");
    CHECK(!found.is_alone);
    LOOK_ALONE("SLURM_JOB_ID", "7", "SLURM_STEP_ID", "0", "SLURM_STEP_NUM_TASKS", "4", "SLURM_PROCID", "none");
    CHECK(!found.is_alone);
    /* what Slurm's step says of itself is not of the one process that a launcher within it has started */
    LOOK_ALONE("PMIX_NAMESPACE", "prterun-vm-893@1", "SLURM_JOB_ID", "7", "SLURM_STEP_ID", "0", "SLURM_STEP_NUM_TASKS", "4",
               "SLURM_PROCID", "2", "OMPI_COMM_WORLD_RANK", "0", "OMPI_COMM_WORLD_SIZE", "1");
    CHECK(!found.is_alone);
    LOOK_ALONE("PMIX_NAMESPACE", "1978269697", "OMPI_MCA_orte_precondition_transports", "ab-cd", "OMPI_COMM_WORLD_RANK", "1",
               "OMPI_COMM_WORLD_SIZE", "2");
    CHECK(found.is_alone);
    CHECK_EQUAL(found.world, 2);
    /* the only one that was spawned */
    LOOK_ALONE("PMIX_NAMESPACE", "prterun-vm-893@5", "OMPI_COMM_WORLD_RANK", "1", "OMPI_COMM_WORLD_SIZE", "2");
    CHECK(!found.is_alone);
    CHECK_EQUAL(found.world, 5);
}

/* Below a process with the arguments of Hydra's proxy. */
static void test_hydra(int group)
{
    char *memory = mpi_of_test_memory();
    LOOK("PMI_RANK", "0");
    CHECK_TEXT(found.identity, "host:4711");
    CHECK_EQUAL(found.world, group + 1);
    LOOK("PMI_RANK", "0", "PMIX_NAMESPACE", "slurm.pmix.7.0", "SLURM_STEP_ID", "0"); /* within a step */
    CHECK_TEXT(found.identity, "host:4711");
    LOOK_ALONE("PMI_RANK", "1", "PMI_SIZE", "2"); /* a program of another MPI */
    CHECK_EQUAL(found.is_alone, group == 0);
    CHECK_EQUAL(found.world, group ? group + 1 : 2);
    /* started by a proxy that was there: the library has its own name, the parents', and others that are none */
    strcpy(memory + 100, "kvs_99_3_1234_host kvs_99_");
    strcpy(memory + 300, "kvs_99_5_4321_host");
    strcpy(memory + 500, "kvs_99_x");
    memcpy(memory + LIBRARY_BYTES - 4, "kvs_", 4);
    LOOK("PMI_RANK", "0", "PMI_SPAWNED", "1");
    CHECK_TEXT(found.identity, "host:4711");
    CHECK_EQUAL(found.world, group ? group + 1 : 6);
    memset(memory, 0, LIBRARY_BYTES);
    LOOK("PMI_RANK", "0", "PMI_SPAWNED", "1"); /* not known: not mixed with others */
    CHECK_EQUAL(strcmp(found.identity, "host:4711") != 0, group == 0);
    CHECK_EQUAL(found.world, group + 1);
}

static void test_names(void)
{
    char directory[] = "/tmp/lapscope-test-XXXXXX", error[256] = "";
    static struct rundir dir;
    CHECK(mkdtemp(directory) != NULL);
    config.dir = directory;
    config.spool_dir = "";
    LOOK("PMIX_NAMESPACE", "prterun-vm-893@1");
    CHECK_EQUAL(rundir_open(&dir, 7, 16, error, sizeof error), 0);
    CHECK_TEXT(dir.path, directory);
    CHECK_TEXT(dir.database + strlen(directory), "/rank-7.db");
    LOOK("PMIX_NAMESPACE", "prterun-vm-893@12");
    CHECK_EQUAL(rundir_open(&dir, 7, 16, error, sizeof error), 0);
    CHECK_TEXT(dir.path, directory);
    CHECK_TEXT(dir.spool + strlen(directory), "/world-12-rank-7.spool");
    char file[4200];
    snprintf(file, sizeof file, "%s/job", directory);
    CHECK_EQUAL(unlink(file), 0);
    CHECK_EQUAL(rmdir(directory), 0);
}

static void test_directory_of_the_job(void)
{
    char directory[] = "/tmp/lapscope-test-XXXXXX", error[256] = "", named[64], expected[64], file[4200];
    static struct rundir dir;
    CHECK(mkdtemp(directory) != NULL);
    snprintf(named, sizeof named, "%s/%%j-%%", directory);
    snprintf(expected, sizeof expected, "%s/prterun-vm-893@1-%%", directory);
    config.dir = named;
    config.spool_dir = "";
    LOOK("PMIX_NAMESPACE", "prterun-vm-893@1");
    CHECK_EQUAL(rundir_make(&dir, 16, error, sizeof error), 0);
    CHECK_TEXT(dir.path, expected);
    snprintf(file, sizeof file, "%s/job", expected);
    CHECK_EQUAL(unlink(file), 0);
    CHECK_EQUAL(rmdir(expected), 0);
    CHECK_EQUAL(rmdir(directory), 0);
}

/* Launchers' names for jobs come round again: launches tell such jobs apart, where both are known. */
static void test_same_name_in_another_launch(void)
{
    char directory[] = "/tmp/lapscope-test-XXXXXX", error[256] = "", second[64], file[4200];
    static struct rundir dir;
    CHECK(mkdtemp(directory) != NULL);
    snprintf(second, sizeof second, "%s-2", directory);
    config.dir = directory;
    config.spool_dir = "";
    LOOK("PMIX_NAMESPACE", "prterun-vm-893@1", "LAPSCOPE_LAUNCH", "aa");
    CHECK_EQUAL(rundir_open(&dir, 0, 16, error, sizeof error), 0);
    CHECK_TEXT(dir.path, directory);
    CHECK_EQUAL(rundir_open(&dir, 1, 16, error, sizeof error), 0);
    CHECK_TEXT(dir.path, directory);
    CHECK_TEXT(dir.job.launch, "aa");
    LOOK("PMIX_NAMESPACE", "prterun-vm-893@1");
    CHECK_EQUAL(rundir_open(&dir, 2, 16, error, sizeof error), 0);
    CHECK_TEXT(dir.path, directory);
    LOOK("PMIX_NAMESPACE", "prterun-vm-893@1", "LAPSCOPE_LAUNCH", "bb");
    CHECK_EQUAL(rundir_open(&dir, 0, 16, error, sizeof error), 0);
    CHECK_TEXT(dir.path, second);
    for (int i = 0; i < 2; i++) {
        snprintf(file, sizeof file, "%s/job", i ? second : directory);
        CHECK_EQUAL(unlink(file), 0);
        CHECK_EQUAL(rmdir(i ? second : directory), 0);
    }
}

/* Spools of jobs whose names begin alike lie in one directory. */
static void test_names_cut_off(void)
{
    char directory[] = "/tmp/lapscope-test-XXXXXX", error[256] = "", first[4200], file[4200];
    static struct rundir dir;
    CHECK(mkdtemp(directory) != NULL);
    config.dir = directory;
    config.spool_dir = "/tmp";
    LOOK("PMIX_NAMESPACE", "prterun-a-node-with-a-long-name-893@1");
    CHECK_EQUAL(rundir_open(&dir, 0, 16, error, sizeof error), 0);
    snprintf(first, sizeof first, "%s", dir.spool);
    snprintf(file, sizeof file, "%s/job", directory);
    CHECK_EQUAL(unlink(file), 0);
    LOOK("PMIX_NAMESPACE", "prterun-a-node-with-a-long-name-894@1");
    CHECK_EQUAL(rundir_open(&dir, 0, 16, error, sizeof error), 0);
    CHECK(strcmp(first, dir.spool) != 0);
    CHECK_EQUAL(unlink(file), 0);
    CHECK_EQUAL(rmdir(directory), 0);
    config.spool_dir = "";
}

static void make_file(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    CHECK(fd >= 0);
    close(fd);
}

/* LAPSCOPE_FILES=node: all ranks of a node come to the same directory and the same database. */
static void test_node_files(void)
{
    char run[] = "/tmp/lapscope-test-XXXXXX", storage[] = "/tmp/lapscope-test-XXXXXX", error[256] = "", database[4400];
    static struct rundir first, second;
    struct stat facts;
    CHECK(mkdtemp(run) != NULL && mkdtemp(storage) != NULL);
    config.dir = run;
    config.spool_dir = storage;
    config.files = CONFIG_FILES_NODE;
    LOOK("PMIX_NAMESPACE", "prterun-vm-893@1");
    CHECK_EQUAL(rundir_open(&first, 7, 16, error, sizeof error), 0);
    CHECK_EQUAL(rundir_open(&second, 9, 16, error, sizeof error), 0);
    CHECK(first.by_node && second.by_node);
    CHECK_TEXT(second.node.path, first.node.path);
    CHECK_TEXT(second.node.database, first.node.database);
    CHECK(!strncmp(first.node.path, storage, strlen(storage)) && stat(first.node.path, &facts) == 0);
    CHECK_EQUAL(facts.st_mode & 0777, 0700);
    CHECK_TEXT(first.spool + strlen(first.node.path), "/rank-7.spool");

    /* somebody comes when the database is there: another one, and another life */
    snprintf(database, sizeof database, "%s", first.node.database);
    make_file(database);
    CHECK_EQUAL(rundir_open(&second, 7, 16, error, sizeof error), 0);
    CHECK_EQUAL(second.life, 2);
    CHECK(strstr(second.node.database, "+2.db") != NULL && strcmp(second.node.database, database) != 0);
    CHECK_TEXT(second.node.path, first.node.path);
    nodedir_leave(&first.node);
    nodedir_leave(&second.node);
    CHECK(stat(first.node.path, &facts) != 0 && stat(first.node.pointer, &facts) != 0 && stat(second.node.pointer, &facts) != 0);
    CHECK_EQUAL(unlink(database), 0);

    /* a directory that others can read or write is not ours to trust */
    CHECK(mkdir(first.node.path, 0755) == 0);
    rundir_leave_node(&first, 7, ENOENT);
    CHECK(!first.by_node);
    CHECK_EQUAL(rmdir(first.node.path), 0);
    snprintf(database, sizeof database, "%s/job", run);
    CHECK_EQUAL(unlink(database), 0);
    CHECK_EQUAL(rmdir(run), 0);
    CHECK_EQUAL(rmdir(storage), 0);
    config.spool_dir = "";
    config.files = CONFIG_FILES_RANK;
}

/* Nothing is cut off in silence: another directory would be written into. */
static void test_directory_too_long(void)
{
    static char directory[4200];
    char error[8192] = "";
    static struct rundir dir;
    memset(directory, 'x', sizeof directory - 1);
    for (size_t i = 0; i < sizeof directory - 1; i += 100)
        directory[i] = '/';
    config.dir = directory;
    LOOK("PMIX_NAMESPACE", "prterun-vm-893@1");
    CHECK(rundir_open(&dir, 0, 16, error, sizeof error) != 0);
    CHECK(strstr(error, "File name too long") != NULL);
}

/* With no room for any byte in any file: SIGXFSZ is for the application's own writes. */
static int write_at_the_limit(void)
{
    char directory[] = "/tmp/lapscope-test-XXXXXX", error[8192] = "";
    static struct rundir dir;
    struct held held;
    FILE *file = tmpfile();
    if (!file || !mkdtemp(directory) || dup2(fileno(file), STDERR_FILENO) < 0 ||
        setrlimit(RLIMIT_FSIZE, &(struct rlimit){0, 0}) != 0)
        return 10;
    log_line("a word");
    config.dir = directory;
    LOOK("PMIX_NAMESPACE", "prterun-vm-893@1");
    held_begin(&held);
    int code = rundir_open(&dir, 0, 16, error, sizeof error);
    held_end(&held);
    if (code != EFBIG || rmdir(directory) != 0)
        return 11;
    ssize_t written = write(STDERR_FILENO, "x", 1);
    (void)written;
    return 12; /* not reached: this one was the application's */
}

static void test_limit_on_files(void)
{
    int status = 0;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0)
        _exit(write_at_the_limit());
    waitpid(child, &status, 0);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGXFSZ);
}

/* Runs this program again in place of a proxy, whose child runs test_hydra(). */
static int below_proxy(const char *program, const char *group)
{
    int status = 1;
    pid_t child = fork();
    if (child == 0) {
        execl(program, program, "--control-port", "host:4711", "--rmk", "user", "--pgid", group, (char *)NULL);
        _exit(127);
    }
    waitpid(child, &status, 0);
    return status;
}

static int be_proxy(int group)
{
    int status = 1;
    pid_t child = fork();
    if (child == 0) {
        test_hydra(group);
        exit(check_summary());
    }
    waitpid(child, &status, 0);
    return status != 0;
}

int main(int argc, char **argv)
{
    if (argc > 1)
        return be_proxy(atoi(argv[argc - 1]));
    CHECK_EQUAL(below_proxy("/proc/self/exe", "0"), 0);
    CHECK_EQUAL(below_proxy("/proc/self/exe", "2"), 0);
    test_open_mpi_4();
    test_open_mpi_5();
    test_other_launchers();
    test_alone();
    test_names();
    test_directory_of_the_job();
    test_same_name_in_another_launch();
    test_names_cut_off();
    test_node_files();
    test_directory_too_long();
    test_limit_on_files();
    return check_summary();
}
