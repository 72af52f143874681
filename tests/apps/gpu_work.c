/*
 * gpu_work ROUNDS KERNELS NANOSECONDS WAIT_US [die|profile]: what a rank with a GPU does (interposer/calibrate/gpu_rounds.h), on a real
 * GPU or on the stand-in gpu_clockwork.c, which GPU_DRIVER names. GPU_WORK_ALONE: kernels on rank 0 alone, as ranks that share a GPU
 * take turns.
 *
 * At the end a copy goes to the GPU and back. Rank 0 prints a sum of what came, which is the same with and without anybody who looks
 * on; with "die" it kills itself, some time after its last work. With "profile" rank 0 makes itself the client of CUPTI before it.
 */
#include "check.h"

#include "../../interposer/calibrate/gpu_rounds.h"
#include "../../interposer/gpu/cupti.h"

#include <signal.h>
#include <unistd.h>

static void copy_there_and_back(const struct gpu *gpu, double *data)
{
    const size_t bytes = GPU_COUNT * sizeof *data;
    unsigned long long memory;
    GPU_CALL(gpu, cuMemAlloc_v2, (unsigned long long *, size_t), &memory, bytes);
    GPU_CALL(gpu, cuMemcpyHtoDAsync_v2, (unsigned long long, const void *, size_t, void *), memory, data, bytes, gpu->streams[0]);
    GPU_CALL(gpu, cuMemcpyDtoHAsync_v2, (void *, unsigned long long, size_t, void *), data, memory, bytes, gpu->streams[0]);
    gpu_wait(gpu);
}

static void give_none(uint8_t **buffer, size_t *size, size_t *most_records)
{
    *buffer = NULL;
    *size = *most_records = 0;
}

static void take_none(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
    (void)context, (void)stream, (void)buffer, (void)size, (void)valid;
}

int main(int argc, char **argv)
{
    static double out[GPU_COUNT], in[GPU_COUNT];
    static char why[256];
    double beside_ns = 0;
    struct gpu gpu;
    MPI_Init(&argc, &argv);
    int rank = comm_rank(MPI_COMM_WORLD);
    CHECK(argc > 4 && comm_size(MPI_COMM_WORLD) % 2 == 0);
    struct gpu_plan plan = {atoi(argv[1]), atoi(argv[2]), strtoull(argv[3], NULL, 10), atol(argv[4])};
    const char *named = getenv("GPU_DRIVER");
    int is_there = gpu_start(&gpu, named ? named : "libcuda.so.1", why, sizeof why) == 0;
    if (!is_there)
        fprintf(stderr, "%s\n", why);
    CHECK(is_there);
    double sum = gpu_rounds(rank && getenv("GPU_WORK_ALONE") ? NULL : &gpu, &plan, out, in, &beside_ns);
    if (rank == 0 && argc > 5 && !strcmp(argv[5], "profile")) /* the stand-in is a CUPTI, too */
        GPU_CALL(&gpu, cuptiActivityRegisterCallbacks, (cupti_requested *, cupti_completed *), give_none, take_none);
    copy_there_and_back(&gpu, in);
    if (rank == 0)
        printf("%.0f\n", sum + in[1]);
    if (rank == 0 && argc > 5 && !strcmp(argv[5], "die")) {
        usleep(400000);
        kill(getpid(), SIGKILL);
    }
    MPI_Finalize();
    return 0;
}
