/*
 * lapscope-calibrate MODE [SECONDS]: finds an MPI, and runs the part of it that was compiled for that MPI's ABI.
 *
 *   transfers   an MPI program for a launcher: messages and collectives over a spread of sizes
 *   limits      an MPI program for a launcher: sends to receivers who are elsewhere
 *   progress    an MPI program for a launcher: ranks that compute between post and wait
 *   gpu         an MPI program for a launcher: kernels of known length beside messages
 *
 * The MPI is the file that LAPSCOPE_MPI_LIBRARY names, else the first that the loader finds.
 */
#define _GNU_SOURCE
#include "module.h"

#include "../preload/abi.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_BYTES = 4096 };

/* Open MPI 4 and 5, MPICH and its relatives, MPICH on Debian, the ABI of MPI-5. */
static const char *const names[] = {"libmpi.so.40", "libmpi.so.12", "libmpich.so.12", "libmpi_abi.so.0", "libmpi.so"};

static int fail(const char *what, const char *why)
{
    fprintf(stderr, "lapscope-calibrate: %s: %s\n", what, why);
    return 1;
}

/* Global: the MPI's own plug-ins and our part look for its symbols there. */
static void *load_mpi(void)
{
    const char *named = getenv("LAPSCOPE_MPI_LIBRARY");
    if (named && *named)
        return dlopen(named, RTLD_NOW | RTLD_GLOBAL);
    void *mpi = NULL;
    for (size_t i = 0; i < sizeof names / sizeof names[0] && !mpi; i++)
        mpi = dlopen(names[i], RTLD_NOW | RTLD_GLOBAL);
    return mpi;
}

static void *load_part(const char *abi)
{
    char path[PATH_BYTES];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    path[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(path, '/');
    size_t used = slash ? (size_t)(slash + 1 - path) : 0;
    if (snprintf(path + used, sizeof path - used, "liblapscope-calibrate-%s.so", abi) >= (int)(sizeof path - used))
        return NULL;
    return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

int main(int argc, char **argv)
{
    if (argc < 2 || argc > 3) {
        fprintf(stderr, "usage: lapscope-calibrate transfers|limits|progress|gpu [SECONDS]; `lapscope calibrate`, `lapscope thresholds --probe` and `lapscope doctor` run it\n");
        return 2;
    }
    void *mpi = load_mpi();
    if (!mpi)
        return fail("no MPI library (LAPSCOPE_MPI_LIBRARY names one)", dlerror());
    struct link_map *map = NULL;
    char version[160] = "";
    dlinfo(mpi, RTLD_DI_LINKMAP, &map);
    const char *path = map ? map->l_name : "";
    const char *abi = abi_of(mpi, path, version, sizeof version);
    if (!abi)
        return fail(path, *version ? version : "not an MPI that lapscope knows");
    void *part = load_part(abi);
    calibrate_fn *run = part ? (calibrate_fn *)dlsym(part, CALIBRATE_SYMBOL) : NULL;
    if (!run)
        return fail("lapscope has no part for this MPI, build it with that MPI's mpicc in PATH", dlerror());
    return run(argv[1], argc > 2 ? strtod(argv[2], NULL) : 10.0);
}
