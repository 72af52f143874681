/*
 * The dynamic linker while messages are pending: a library (plugin.c) loaded, called and unloaded again and again, and the
 * objects of the process walked through, with the linker's lock held while the program computes.
 */
#include "traffic.h"

#include <dlfcn.h>
#include <link.h>

enum { LOADS = 4, ROUNDS = 150 };

static int look(struct dl_phdr_info *object, size_t bytes, void *count)
{
    (void)bytes;
    *(int *)count += object->dlpi_phnum > 0 || arithmetic(2000) > 2.0;
    return 0;
}

static void load(void)
{
    void *plugin = dlopen("$ORIGIN/libplugin.so", RTLD_NOW | RTLD_LOCAL);
    CHECK(plugin);
    int (*answer)(int) = (int (*)(int))dlsym(plugin, "plugin_answer");
    CHECK(answer && answer(40) == 41 && answer(40) == 42);
    Dl_info about;
    CHECK(dladdr((void *)answer, &about) && strstr(about.dli_fname, "libplugin.so"));
    CHECK(dlsym(plugin, "no_such_function") == NULL && dlerror() != NULL);
    CHECK(dlclose(plugin) == 0);
}

static void work(int round)
{
    (void)round;
    for (int i = 0; i < LOADS; i++) {
        int objects = 0;
        load();
        dl_iterate_phdr(look, &objects);
        CHECK(objects > 3);
    }
}

int main(int argc, char **argv)
{
    int rank = start(&argc, &argv, 2);
    under_traffic(argc, argv, ROUNDS, work);
    if (rank == 0)
        puts("loaded, called, unloaded");
    MPI_Finalize();
    return 0;
}
