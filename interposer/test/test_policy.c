/* LAPSCOPE_INJECT_POLICY: which call sites it names. */
#define _GNU_SOURCE
#include "check.h"

#include "../recorder/inject/policy.h"
#include "../recorder/record/modules.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static void here(void)
{
}

static uintptr_t address(unsigned offset)
{
    return (uintptr_t)here + offset;
}

static struct module_place place_of(uintptr_t at)
{
    struct module_place place;
    CHECK(module_of(at, &place));
    return place;
}

static void write_policy(const char *path)
{
    struct module_place place = place_of(address(0));
    const char *id = *place.build_id ? place.build_id : "-";
    FILE *file = fopen(path, "w");
    fprintf(file, "# a comment\n\n   default off   # as a rule\n");
    fprintf(file, "on MPI_Isend %s+0x%llx %s # here\n", place.name, (unsigned long long)place.offset, id);
    fprintf(file, "off MPI_Irecv %s+0x%llx %s\n", place.name, (unsigned long long)place.offset + 1, id);
    fprintf(file, "on\tMPI_Irecv\t%s+0x%llx\t%s\n", place.name, (unsigned long long)place.offset + 1, id);
    fprintf(file, "on MPI_Ibcast %s+0x%llx 00ff\n", place.name, (unsigned long long)place.offset);
    fprintf(file, "on MPI_Isend another+0x%llx %s\n", (unsigned long long)place.offset + 2, id);
    fprintf(file, "off MPI_Ssend %s+0x%llx %s %s+0x%llx %s # by way of a wrapper\n", place.name,
            (unsigned long long)place.offset, id, place.name, (unsigned long long)place.offset + 3, id);
    fprintf(file, "on MPI_Ssend %s+0x%llx %s %s+0x%llx\n", place.name, (unsigned long long)place.offset, id, place.name,
            (unsigned long long)place.offset + 3); /* a build id is missing */
    fprintf(file, "off MPI_Isend\nperhaps MPI_Isend %s+0x0 %s\non MPI_Isend nowhere %s\n", place.name, id, id);
    fclose(file);
}

/* Adds to what was read. */
static void write_default_on(const char *path)
{
    FILE *file = fopen(path, "w");
    fputs("default on\n", file);
    fclose(file);
    CHECK(inject_policy_read(path, 0) == NULL);
    unlink(path);
}

/* Nobody will ever write into it: a test that waits is ended by its alarm. */
static void test_fifo(void)
{
    char directory[] = "/tmp/lapscope-policy-XXXXXX", path[64];
    CHECK(mkdtemp(directory) != NULL);
    snprintf(path, sizeof path, "%s/fifo", directory);
    CHECK(mkfifo(path, 0600) == 0);
    alarm(20);
    CHECK(inject_policy_read(path, 0) != NULL);
    alarm(0);
    unlink(path);
    rmdir(directory);
}

static int is_off(const char *call, uintptr_t from, uintptr_t caller)
{
    const uintptr_t path[] = {from, caller, address(9)};
    return inject_policy_is_off(call, path, caller ? 3 : 1);
}

int main(void)
{
    char path[] = "policy-XXXXXX";
    CHECK(!is_off("MPI_Isend", address(0), 0)); /* without a file everything is on */
    CHECK(inject_policy_read("", 1) == NULL);
    CHECK(inject_policy_read("no-such-file", 0) != NULL);
    CHECK(inject_policy_read("/dev/zero", 0) != NULL);
    CHECK(inject_policy_read(".", 0) != NULL);
    test_fifo();
    close(mkstemp(path));
    write_policy(path);
    CHECK(inject_policy_read(path, 0) == NULL);
    unlink(path);
    CHECK(!is_off("MPI_Isend", address(0), 0));
    CHECK(is_off("MPI_Irecv", address(0), 0));  /* another call at the same place */
    CHECK(!is_off("MPI_Irecv", address(1), 0)); /* of two rules the later one */
    CHECK(is_off("MPI_Isend", address(1), 0));
    CHECK(is_off("MPI_Isend", address(2), 0));  /* another module */
    CHECK(is_off("MPI_Ibcast", address(0), 0)); /* another build */
    CHECK(is_off("MPI_Isend", 0, 0));
    CHECK(!is_off("MPI_Isend", address(0), address(3))); /* whoever calls it */
    write_default_on(path);
    CHECK(is_off("MPI_Ssend", address(0), address(3)));
    CHECK(!is_off("MPI_Ssend", address(0), address(4))); /* another caller */
    CHECK(!is_off("MPI_Ssend", address(0), 0));          /* no caller known */
    CHECK(!is_off("MPI_Ssend", address(1), address(3)));
    return check_summary();
}
