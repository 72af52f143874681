/*
 * gpu_work ROUNDS KERNELS NANOSECONDS WAIT_US: what a rank with a GPU does, by the driver's interface alone: on a real GPU by a PTX kernel
 * that spins for a set time, or on the stand-in gpu_clockwork.c.
 *
 * In each round ranks exchange a message with their neighbour, the odd ones WAIT_US later than the even ones, who wait so long. In
 * even rounds KERNELS run meanwhile, on two streams in turn; in odd rounds they run after the wait, and nothing overlaps. At the
 * end a copy goes to the GPU and back. Rank 0 prints a sum of what came, which is the same with and without anybody
 * who looks on, and with "told" as a fifth argument how long waits were beside
 * one kernel, on standard error; with "die" it
 * kills itself, some time after its last work.
 */
#include "check.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>

enum { COUNT = 100000 };

static const char ptx[] = ".version 6.0\n.target sm_50\n.address_size 64\n"
                          ".visible .entry spin(.param .u64 ns)\n{\n"
                          ".reg .u64 %t<4>;\n.reg .pred %p;\n"
                          "ld.param.u64 %t0, [ns];\n"
                          "mov.u64 %t1, %globaltimer;\n"
                          "again:\nmov.u64 %t2, %globaltimer;\n"
                          "sub.u64 %t3, %t2, %t1;\n"
                          "setp.lt.u64 %p, %t3, %t0;\n"
                          "@%p bra again;\nret;\n}\n";

static void *driver, *function, *streams[2];

static void *in_driver(const char *name)
{
    void *found = dlsym(driver, name);
    CHECK(found);
    return found;
}

#define CALL(name, types, ...) CHECK(((int (*) types)in_driver(#name))(__VA_ARGS__) == 0)

static void start_gpu(void)
{
    void *context, *module;
    int device;
    const char *named = getenv("GPU_DRIVER"); /* the stand-in */
    driver = dlopen(named ? named : "libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    CHECK(driver);
    CALL(cuInit, (unsigned), 0);
    CALL(cuDeviceGet, (int *, int), &device, 0);
    CALL(cuCtxCreate_v2, (void **, unsigned, int), &context, 0, device);
    CALL(cuModuleLoadData, (void **, const void *), &module, ptx);
    CALL(cuModuleGetFunction, (void **, void *, const char *), &function, module, "spin");
    for (int i = 0; i < 2; i++)
        CALL(cuStreamCreate, (void **, unsigned), &streams[i], 1 /* does not wait for the default stream */);
}

static void launch(int kernels, uint64_t ns)
{
    void *parameters[] = {&ns};
    for (int i = 0; i < kernels; i++)
        CALL(cuLaunchKernel, (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **),
             function, 1, 1, 1, 1, 1, 1, 0, streams[i % 2], parameters, NULL);
}

static void wait_for_gpu(void)
{
    for (int i = 0; i < 2; i++)
        CALL(cuStreamSynchronize, (void *), streams[i]);
}

static void copy_there_and_back(double *data)
{
    unsigned long long memory;
    CALL(cuMemAlloc_v2, (unsigned long long *, size_t), &memory, COUNT * sizeof *data);
    CALL(cuMemcpyHtoDAsync_v2, (unsigned long long, const void *, size_t, void *), memory, data, COUNT * sizeof *data, streams[0]);
    CALL(cuMemcpyDtoHAsync_v2, (void *, unsigned long long, size_t, void *), data, memory, COUNT * sizeof *data, streams[0]);
    wait_for_gpu();
}

int main(int argc, char **argv)
{
    static double out[COUNT], in[COUNT];
    double sum = 0, beside = 0;
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    CHECK(argc > 4 && size % 2 == 0);
    int rounds = atoi(argv[1]), kernels = atoi(argv[2]), peer = rank ^ 1;
    uint64_t ns = strtoull(argv[3], NULL, 10);
    if (rank && getenv("GPU_WORK_ALONE")) /* ranks that share a GPU take turns, and kernels take longer */
        kernels = 0;
    useconds_t late_us = (useconds_t)atoi(argv[4]);
    start_gpu();
    for (int round = 0; round < rounds; round++) {
        MPI_Request requests[2];
        for (int i = 0; i < COUNT; i++)
            out[i] = rank + round + i;
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Irecv(in, COUNT, MPI_DOUBLE, peer, 0, MPI_COMM_WORLD, &requests[0]);
        if (round % 2 == 0)
            launch(kernels, ns);
        if (rank % 2)
            usleep(late_us);
        MPI_Isend(out, COUNT, MPI_DOUBLE, peer, 0, MPI_COMM_WORLD, &requests[1]);
        double began = MPI_Wtime();
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        double waited = MPI_Wtime() - began, lasts = 1e-9 * (double)ns;
        if (round % 2 == 0)
            beside += waited < lasts ? waited : lasts;
        if (round % 2)
            launch(kernels, ns);
        wait_for_gpu();
        for (int i = 0; i < COUNT; i++)
            sum += in[i];
    }
    copy_there_and_back(in);
    if (rank == 0)
        printf("%.0f\n", sum + in[1]);
    if (rank == 0 && argc > 5 && !strcmp(argv[5], "die")) {
        usleep(400000);
        kill(getpid(), SIGKILL);
    }
    if (rank == 0 && argc > 5)
        fprintf(stderr, "%.0f ns of waits beside kernels\n", 1e9 * beside);
    MPI_Finalize();
    return 0;
}
