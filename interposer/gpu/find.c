#define _GNU_SOURCE
#include "find.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Directories that are looked into, each ended by a zero. */
struct places {
    char text[64 * PATH_MAX];
    size_t used;
};

static void add_place(struct places *places, const char *directory, int length, const char *below)
{
    size_t room = sizeof places->text - places->used;
    int wrote = snprintf(places->text + places->used, room, "%.*s%s/", length, directory, below);
    if (wrote > 0 && (size_t)wrote < room)
        places->used += (size_t)wrote + 1;
}

/* What a program may have loaded of the CUDA with which it was built, also where its runtime is in the executable. */
static const char *const of_toolkits[] = {"libcudart.so", "libcublas.so", "libcufft.so", "libcurand.so", "libcusolver.so", "libcusparse.so",
                                          "libnvrtc.so", "libnvJitLink.so"};

static int is_of_toolkit(const char *name)
{
    for (size_t i = 0; i < sizeof of_toolkits / sizeof *of_toolkits; i++)
        if (strncmp(name, of_toolkits[i], strlen(of_toolkits[i])) == 0)
            return 1;
    return 0;
}

/* PyPI's wheels have CUPTI beside these (nvidia/cu13/lib, or nvidia/cublas/lib and nvidia/cuda_cupti/lib), a toolkit has it in extras,
 * beside lib64 or targets/x86_64-linux/lib. */
static int note_neighbours(struct dl_phdr_info *object, size_t size, void *context)
{
    (void)size;
    const char *path = object->dlpi_name, *slash = strrchr(path, '/');
    if (!slash || !is_of_toolkit(slash + 1))
        return 0;
    add_place(context, path, (int)(slash - path), "");
    add_place(context, path, (int)(slash - path), "/../../cuda_cupti/lib");
    add_place(context, path, (int)(slash - path), "/../extras/CUPTI/lib64");
    add_place(context, path, (int)(slash - path), "/../../../extras/CUPTI/lib64");
    return 0;
}

static void list_places(struct places *places)
{
    /* of modules: of most sites, of Cray's and of NVIDIA's compilers, of EasyBuild */
    static const char *const roots[] = {"CUDA_HOME", "CUDA_PATH", "CUDA_ROOT", "CUDATOOLKIT_HOME", "NVHPC_CUDA_HOME", "EBROOTCUDA"};
    dl_iterate_phdr(note_neighbours, places);
    for (size_t i = 0; i < sizeof roots / sizeof *roots; i++) {
        const char *root = getenv(roots[i]);
        if (root && *root)
            add_place(places, root, PATH_MAX, "/extras/CUPTI/lib64");
    }
    add_place(places, "", 0, ""); /* see below: as the loader finds it, by LD_LIBRARY_PATH or its cache */
    add_place(places, "/usr/local/cuda", PATH_MAX, "/extras/CUPTI/lib64");
}

/* Of the driver in the process, which a CUPTI may not be ahead of; it is not known where there is none. */
static int newest_cuda(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    int (*ask)(int *version) = NULL;
    int version = 13000;
    if (driver)
        *(void **)&ask = dlsym(driver, "cuDriverGetVersion");
    return ask && ask(&version) != 0 ? 13 : version / 1000;
}

static int try_place(const char *place, int (*use)(void *library, const char *path))
{
    enum { OLDEST = 12, NEWEST = 13 };
    char path[PATH_MAX];
    int newest = newest_cuda();
    for (int cuda = newest < NEWEST ? newest : NEWEST; cuda >= OLDEST; cuda--) {
        int length = snprintf(path, sizeof path, "%slibcupti.so.%d", strcmp(place, "/") == 0 ? "" : place, cuda);
        void *library = length < (int)sizeof path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
        if (library && use(library, path))
            return 1;
    }
    return 0;
}

int find_cupti(int (*use)(void *library, const char *path))
{
    struct places *places = calloc(1, sizeof *places);
    int is_taken = 0;
    if (!places)
        return 0;
    list_places(places);
    for (const char *at = places->text; !is_taken && at < places->text + places->used; at += strlen(at) + 1)
        is_taken = try_place(at, use);
    free(places);
    return is_taken;
}
