/*
 * Kernels of known length beside messages, on rank 0's GPU: what is recorded of them is compared by `lapscope doctor --gpu`. What rank 0
 * knows is the name of a region: crates/measure/src/gpu_known.rs reads it.
 */
#include "module.h"

#include "gpu_rounds.h"

enum { ROUNDS = 10, MOST_AT_ONCE = 2, KERNEL_NS = 20000000, LATE_US = 10000, NAME_BYTES = 64 /* of a region */ };

static void say(const char *name)
{
    MPI_Pcontrol(1, name);
    MPI_Pcontrol(-1, name);
}

static void say_what_it_knows(double beside_ns)
{
    char name[NAME_BYTES];
    snprintf(name, sizeof name, "gpu computed %lld waited %.0f", (long long)MOST_AT_ONCE * ROUNDS * KERNEL_NS, beside_ns);
    say(name);
}

static void say_why_not(int error, const char *why)
{
    char name[NAME_BYTES];
    snprintf(name, sizeof name, "gpu %s %s", error == GPU_NONE ? "missing" : "fails", why);
    say(name);
}

/* Ranks that share a GPU take turns on it, and kernels take longer: so one rank uses one. */
void use_gpu(struct bench *bench, double seconds)
{
    struct gpu gpu;
    char why[NAME_BYTES - sizeof "gpu missing "] = "";
    double beside_ns = 0;
    (void)seconds;
    unsetenv("CUDA_LAUNCH_BLOCKING"); /* with it no launch returns before its kernel ends, and no wait is beside one */
    int error = bench->rank == 0 ? gpu_start(&gpu, "libcuda.so.1", why, sizeof why) : GPU_NONE;
    int is_there = error == 0;
    if (bench->rank == 0 && !is_there)
        say_why_not(error, why);
    int goes_on = is_there;
    MPI_Bcast(&goes_on, 1, MPI_INT, 0, MPI_COMM_WORLD);
    struct gpu_plan plan = {ROUNDS, 1, KERNEL_NS, LATE_US};
    for (; goes_on && plan.kernels <= MOST_AT_ONCE; plan.kernels++)
        gpu_rounds(is_there ? &gpu : NULL, &plan, (double *)(void *)bench->out, (double *)(void *)bench->in, &beside_ns);
    if (is_there)
        say_what_it_knows(beside_ns);
}
