/* Who is linked with the preload library asks it by dlsym: of which questions a plugin is told. */
#define _GNU_SOURCE
#include "check.h"

#include "../preload/devices.h"

#include <dlfcn.h>

static volatile unsigned told; /* compilers take it that dlsym calls nobody back */

static void asked(const char *name)
{
    CHECK_TEXT(name, "cuptiActivityEnable");
    told++;
}

static unsigned told_by(void *handle, const char *name)
{
    told = 0;
    void *found = dlsym(handle, name);
    CHECK_EQUAL(found != NULL, told);
    return told;
}

static void test_without_cupti(void)
{
    CHECK_EQUAL(told_by(RTLD_NEXT, "cuptiActivityEnable"), 0);
    CHECK_EQUAL(told_by(RTLD_DEFAULT, "cuptiActivityEnable"), 0);
}

/* Opened by the plugin, say: whoever has no handle of it does not find it. */
static void test_opened(const char *path)
{
    void *cupti = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    CHECK(cupti != NULL);
    CHECK_EQUAL(told_by(RTLD_NEXT, "cuptiActivityEnable"), 0);
    CHECK_EQUAL(told_by(cupti, "cuptiNothing"), 0);
    CHECK_EQUAL(told_by(cupti, "cuptiActivityEnable"), 1);
}

static void test_library_with_its_own(const char *path)
{
    void *profiler = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    void *(*ask)(const char *) = profiler ? (void *(*)(const char *))dlsym(profiler, "profiler_asks_next") : NULL;
    told = 0;
    CHECK(ask && ask("cuptiActivityEnable") && told == 1);
    CHECK(ask && !ask("cuptiNothing") && told == 1);
    CHECK_EQUAL(told_by(RTLD_NEXT, "cuptiActivityEnable"), 0);
}

int main(int argc, char **argv)
{
    CHECK_EQUAL(argc, 3);
    lapscope_devices.asked = asked;
    test_without_cupti();
    test_opened(argv[1]);
    test_library_with_its_own(argv[2]);
    return check_summary();
}
