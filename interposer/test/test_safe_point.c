/* Which code may be interrupted for MPI: with libraries that stand for an MPI, what it needs, its plug-in, and a
 * program's own. */
#define _GNU_SOURCE
#include "check.h"

#include "../recorder/inject/safe_point.h"

#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>

int standin_mpi(void);
int standin_program(void);
int standin_allocator(void);

/* Called with functions of the C library: in the one of the two programs that is built without PIE that makes the loader give
 * everybody an address in the program. */
__attribute__((noipa)) static int are_taken(void *(*allocate)(size_t), void (*release)(void *))
{
    void *memory = allocate(1);
    release(memory);
    return memory != NULL;
}

static uintptr_t address_in(void *library, const char *name)
{
    return (uintptr_t)dlsym(library, name);
}

static int is_safe(uintptr_t address)
{
    CHECK(address != 0);
    return safe_point_holds(address + 1);
}

static void *load(const char *file)
{
    void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    CHECK(library != NULL);
    return library;
}

static void update(void)
{
    CHECK(safe_point_update(address_in(load(MPI), "standin_mpi")));
    CHECK(safe_point_problem() == NULL);
}

static void test_what_is_there_from_the_start(void)
{
    CHECK(!safe_point_holds((uintptr_t)address_in)); /* nothing is known yet */
    safe_point_before_mpi();
    void *opened_by_mpi = load(OPENED_BY_MPI);
    update();
    CHECK(is_safe((uintptr_t)address_in));
    CHECK(is_safe(address_in(load(PROGRAM), "standin_program")));
    CHECK(is_safe(address_in(RTLD_DEFAULT, "lgamma")));
    CHECK(!is_safe(address_in(load(MPI), "standin_mpi")));
    CHECK(!is_safe(address_in(RTLD_DEFAULT, "standin_needed")));
    CHECK(!is_safe(address_in(RTLD_DEFAULT, "qsort")));
    CHECK(!is_safe(address_in(load("libc.so.6"), "malloc")));
    CHECK(!is_safe(address_in(RTLD_DEFAULT, "dl_iterate_phdr")));
    CHECK(!is_safe(address_in(opened_by_mpi, "standin_alone")));
    CHECK(!is_safe(address_in(RTLD_DEFAULT, "standin_allocator")));
    CHECK(!is_safe(address_in(RTLD_DEFAULT, "standin_memory"))); /* which the allocator needs */
    CHECK(!safe_point_holds(0) && !safe_point_holds(UINTPTR_MAX));
    int on_the_stack;
    CHECK(!safe_point_holds((uintptr_t)&on_the_stack));
}

static void test_what_is_loaded_later(void)
{
    void *plugin = load(PLUGIN), *user = load(USER);
    uintptr_t in_plugin = address_in(plugin, "standin_plugin"), in_user = address_in(user, "standin_user");
    CHECK(!is_safe(in_user)); /* not known before the next update */
    update();
    CHECK(!is_safe(in_plugin));
    CHECK(is_safe(in_user));
    void *driver = load(DRIVER);
    update();
    CHECK(!is_safe(address_in(driver, "cuDeviceGetCount")));
    CHECK(!is_safe(address_in(RTLD_DEFAULT, "lgamma"))); /* where a driver may compute while it holds its lock */
    dlclose(user);
    update();
    CHECK(!is_safe(in_user));
}

int main(void)
{
    if (!are_taken(malloc, free) || standin_mpi() + standin_program() + standin_allocator() + (lgamma((double)atoi("3")) > 100) != 7)
        return 1;
    test_what_is_there_from_the_start();
    test_what_is_loaded_later();
    return check_summary();
}
