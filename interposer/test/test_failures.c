/* Conversions that cannot succeed: a sentence that says why, no partial database, the spool left alone. */
#define _GNU_SOURCE
#include "check.h"
#include "sample.h"
#include "support.h"

#include "../recorder/store/store.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static struct store_result result;
static char error[1024];

static int convert_to(const char *database)
{
    error[0] = '\0';
    return store_convert(support_path("rank-3.spool"), database, NULL, NULL, &result, error, sizeof error);
}

static int mentions(const char *words)
{
    int found = strstr(error, words) != NULL;
    if (!found)
        printf("error: %s\n", error);
    return found;
}

static void write_sample(void)
{
    struct spool_builder b;
    struct sample_ends ends;
    build_sample(&b, &ends);
    build_write(&b, support_path("rank-3.spool"), b.bytes);
    build_free(&b);
}

static void test_no_spool(void)
{
    CHECK_EQUAL(store_convert(support_path("none.spool"), support_path("rank-3.db"), NULL, NULL, &result, error, sizeof error),
                -1);
    CHECK(mentions("none.spool cannot be opened (No such file or directory)"));
    CHECK_EQUAL(support_files(), 1);
}

static void test_directory_as_spool(void)
{
    CHECK_EQUAL(store_convert(support_directory, support_path("rank-3.db"), NULL, NULL, &result, error, sizeof error), -1);
    CHECK(mentions("cannot be read"));
}

static void test_no_directory(void)
{
    CHECK_EQUAL(convert_to(support_path("missing/rank-3.db")), -1);
    CHECK(mentions("missing/rank-3.db.part cannot be made (No such file or directory)"));
}

static void test_name_taken_by_directory(void)
{
    const char *database = support_path("taken.db");
    CHECK_EQUAL(mkdir(database, 0700), 0);
    CHECK_EQUAL(convert_to(database), -1);
    CHECK(mentions("cannot be renamed"));
    CHECK_EQUAL(rmdir(database), 0);
    CHECK_EQUAL(support_files(), 1);
}

static void test_path_too_long(void)
{
    char *path = malloc(5000);
    memset(path, 'x', 4999);
    path[4999] = '\0';
    CHECK_EQUAL(convert_to(path), -1);
    CHECK(mentions("too long"));
    free(path);
}

/* A link in the place of the partial file is removed, not followed. */
static void test_link(void)
{
    struct stat facts;
    const char *victim = support_path("victim"), *part = support_path("rank-3.db.part");
    FILE *file = fopen(victim, "w");
    fclose(file);
    CHECK_EQUAL(symlink(victim, part), 0);
    CHECK_EQUAL(convert_to(support_path("rank-3.db")), 0);
    CHECK(stat(victim, &facts) == 0 && facts.st_size == 0);
    unlink(victim);
    unlink(support_path("rank-3.db"));
}

/* In a child: limits and name spaces stay there. */
static int in_child(int (*body)(void))
{
    int status;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0)
        _exit(body());
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* As somebody who is not root, for whom permissions count. */
static int convert_into_closed_directory(void)
{
    if (geteuid() == 0 && (chmod(support_directory, 0711) != 0 || chmod(support_path("rank-3.spool"), 0644) != 0 ||
                           setgid(65534) != 0 || setuid(65534) != 0))
        return 77;
    return convert_to(support_path("closed/rank-3.db")) == -1 && mentions("rank-3.db.part cannot be made (Permission denied)")
               ? 0
               : 1;
}

static void test_unwritable_directory(void)
{
    CHECK_EQUAL(mkdir(support_path("closed"), 0500), 0);
    CHECK_EQUAL(in_child(convert_into_closed_directory), 0);
    CHECK_EQUAL(rmdir(support_path("closed")), 0); /* empty */
}

/* SIGXFSZ is left at its default: it would end the process, as it would the application. */
static int convert_under_limit(void)
{
    for (rlim_t bytes = 0; bytes <= 72 << 10; bytes += 2 << 10) {
        struct rlimit limit = {bytes, RLIM_INFINITY};
        if (setrlimit(RLIMIT_FSIZE, &limit) != 0)
            return 10;
        if (convert_to(support_path("rank-3.db")) != -1)
            return 11;
        if (!mentions("ulimit -f") || support_files() != 1)
            return 12;
    }
    return 0;
}

static int convert_on_full_disk(void)
{
    const char *mount_point = support_path("disk"), *database = support_path("disk/rank-3.db");
    if (mkdir(mount_point, 0700) != 0 || unshare(CLONE_NEWNS) != 0 ||
        mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("none", mount_point, "tmpfs", 0, "size=32k,mode=0700") != 0)
        return 77;
    return convert_to(database) == -1 && mentions("free some space") && access(database, F_OK) != 0 &&
                   access(support_path("disk/rank-3.db.part"), F_OK) != 0
               ? 0
               : 1;
}

static void test_full_disk(void)
{
    int code = in_child(convert_on_full_disk);
    if (code == 77)
        printf("full disk: not checked, mounting is not permitted here\n");
    else
        CHECK_EQUAL(code, 0);
    rmdir(support_path("disk"));
}

int main(void)
{
    support_begin();
    write_sample();
    test_no_spool();
    test_directory_as_spool();
    test_no_directory();
    test_unwritable_directory();
    test_name_taken_by_directory();
    test_path_too_long();
    test_link();
    CHECK_EQUAL(in_child(convert_under_limit), 0);
    test_full_disk();
    CHECK_EQUAL(support_files(), 1);
    CHECK_EQUAL(convert_to(support_path("rank-3.db")), 0); /* nothing of all that has hurt the spool */
    support_end();
    return check_summary();
}
