/* LAPSCOPE_INJECT_POLICY: which call sites it names. */
#define _GNU_SOURCE
#include "check.h"

#include "../recorder/inject_policy.h"
#include "../recorder/modules.h"

#include <stdlib.h>
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
    fprintf(file, "off MPI_Isend\nperhaps MPI_Isend %s+0x0 %s\non MPI_Isend nowhere %s\n", place.name, id, id);
    fclose(file);
}

int main(void)
{
    char path[] = "policy-XXXXXX";
    CHECK(!inject_policy_is_off("MPI_Isend", address(0))); /* without a file everything is on */
    CHECK(inject_policy_read("", 1) == NULL);
    CHECK(inject_policy_read("no-such-file", 0) != NULL);
    close(mkstemp(path));
    write_policy(path);
    CHECK(inject_policy_read(path, 0) == NULL);
    unlink(path);
    CHECK(!inject_policy_is_off("MPI_Isend", address(0)));
    CHECK(inject_policy_is_off("MPI_Irecv", address(0)));  /* another call at the same place */
    CHECK(!inject_policy_is_off("MPI_Irecv", address(1))); /* of two rules the later one */
    CHECK(inject_policy_is_off("MPI_Isend", address(1)));
    CHECK(inject_policy_is_off("MPI_Isend", address(2)));  /* another module */
    CHECK(inject_policy_is_off("MPI_Ibcast", address(0))); /* another build */
    CHECK(inject_policy_is_off("MPI_Isend", 0));
    return check_summary();
}
