/*
 * What a rank with a GPU does, and knows of itself: kernels that spin for a set time, beside waits for messages and after them. By CUDA's
 * driver interface alone, opened at run time. `lapscope doctor --gpu` (gpu.c) and tests/apps/gpu_work.c share it.
 */
#ifndef LAPSCOPE_GPU_ROUNDS_H
#define LAPSCOPE_GPU_ROUNDS_H

#include <dlfcn.h>
#include <mpi.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { GPU_COUNT = 100000 /* numbers of a message */, GPU_STREAMS = 2 };

struct gpu {
    void *driver, *function, *streams[GPU_STREAMS];
};

struct gpu_plan {
    int rounds, kernels;    /* of each second round, on the streams in turn */
    uint64_t ns;            /* of each kernel */
    long late_us;           /* so much later the odd ranks send */
};

static const char gpu_spin[] = ".version 6.0\n.target sm_50\n.address_size 64\n"
                               ".visible .entry spin(.param .u64 ns)\n{\n"
                               ".reg .u64 %t<4>;\n.reg .pred %p;\n"
                               "ld.param.u64 %t0, [ns];\n"
                               "mov.u64 %t1, %globaltimer;\n"
                               "again:\nmov.u64 %t2, %globaltimer;\n"
                               "sub.u64 %t3, %t2, %t1;\n"
                               "setp.lt.u64 %p, %t3, %t0;\n"
                               "@%p bra again;\nret;\n}\n";

/* Of the driver's; -1 where it has none of that name. */
#define GPU_ERROR(gpu, name, types, ...) (dlsym((gpu)->driver, #name) ? ((int (*) types)dlsym((gpu)->driver, #name))(__VA_ARGS__) : -1)

/* What worked once does not fail later. */
#define GPU_CALL(gpu, name, types, ...) gpu_must_work(#name, GPU_ERROR(gpu, name, types, __VA_ARGS__))

static void gpu_must_work(const char *name, int error)
{
    if (error) {
        fprintf(stderr, "%s: CUDA's error %d\n", name, error);
        MPI_Abort(MPI_COMM_WORLD, 99);
    }
}

enum { GPU_NONE = -1, GPU_FAILS = -2, GPU_ERROR_NO_DEVICE = 100 };

/* Returns 0, or after it has said into `why` what there is not, or what does not work. */
static int gpu_start(struct gpu *gpu, const char *driver, char *why, size_t room)
{
    void *context, *module;
    int device, error;
    gpu->driver = dlopen(driver, RTLD_NOW | RTLD_GLOBAL);
    if (!gpu->driver)
        return snprintf(why, room, "%s cannot be loaded", driver), GPU_NONE;
    if ((error = GPU_ERROR(gpu, cuInit, (unsigned), 0)) != 0 || (error = GPU_ERROR(gpu, cuDeviceGet, (int *, int), &device, 0)) != 0 ||
        (error = GPU_ERROR(gpu, cuCtxCreate_v2, (void **, unsigned, int), &context, 0, device)) != 0 ||
        (error = GPU_ERROR(gpu, cuModuleLoadData, (void **, const void *), &module, gpu_spin)) != 0)
        return snprintf(why, room, "error %d of %s", error, driver), error == GPU_ERROR_NO_DEVICE ? GPU_NONE : GPU_FAILS;
    GPU_CALL(gpu, cuModuleGetFunction, (void **, void *, const char *), &gpu->function, module, "spin");
    for (int i = 0; i < GPU_STREAMS; i++)
        GPU_CALL(gpu, cuStreamCreate, (void **, unsigned), &gpu->streams[i], 1 /* does not wait for the default stream */);
    return 0;
}

static void gpu_launch(const struct gpu *gpu, int kernels, uint64_t ns)
{
    void *parameters[] = {&ns};
    for (int i = 0; i < kernels; i++)
        GPU_CALL(gpu, cuLaunchKernel, (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **),
                 gpu->function, 1, 1, 1, 1, 1, 1, 0, gpu->streams[i % GPU_STREAMS], parameters, NULL);
}

static void gpu_wait(const struct gpu *gpu)
{
    for (int i = 0; i < GPU_STREAMS; i++)
        GPU_CALL(gpu, cuStreamSynchronize, (void *), gpu->streams[i]);
}

/*
 * In each round ranks exchange a message with their neighbour, if they have one, the odd ones later than the even ones, who wait so long.
 * In even rounds kernels run meanwhile, in odd rounds they run after the wait, and nothing overlaps. Returns a sum of what came;
 * `beside_ns`: what waits were beside kernels, one of which lasts as long as all that run at once. No `gpu`, no kernels.
 */
static double gpu_rounds(const struct gpu *gpu, const struct gpu_plan *plan, double *out, double *in, double *beside_ns)
{
    double sum = 0, lasts = (double)plan->ns;
    const struct timespec late = {.tv_sec = plan->late_us / 1000000, .tv_nsec = plan->late_us % 1000000 * 1000};
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int peer = (rank ^ 1) < size ? rank ^ 1 : MPI_PROC_NULL;
    for (int round = 0; round < plan->rounds; round++) {
        MPI_Request requests[2];
        MPI_Status statuses[2];
        for (int i = 0; i < GPU_COUNT; i++)
            out[i] = rank + round + i;
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Irecv(in, GPU_COUNT, MPI_DOUBLE, peer, 0, MPI_COMM_WORLD, &requests[0]);
        if (gpu && round % 2 == 0)
            gpu_launch(gpu, plan->kernels, plan->ns);
        if (rank % 2)
            nanosleep(&late, NULL);
        MPI_Isend(out, GPU_COUNT, MPI_DOUBLE, peer, 0, MPI_COMM_WORLD, &requests[1]);
        double began = MPI_Wtime();
        MPI_Waitall(2, requests, statuses);
        double waited = 1e9 * (MPI_Wtime() - began);
        if (gpu && round % 2 == 0)
            *beside_ns += waited < lasts ? waited : lasts;
        if (gpu && round % 2)
            gpu_launch(gpu, plan->kernels, plan->ns);
        if (gpu)
            gpu_wait(gpu);
        for (int i = 0; i < GPU_COUNT; i++)
            sum += in[i];
    }
    return sum;
}

#endif
