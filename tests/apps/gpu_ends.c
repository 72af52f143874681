/*
 * gpu_ends session|abort|aborts: a kernel of 20 ms on the stand-in gpu_clockwork.c, which GPU_DRIVER names, and at once the end of MPI
 * that is not MPI_Finalize: that of the only session, or MPI_Abort with the code 7, by one thread or by two.
 */
#include "session.h"

#include <pthread.h>
#include <unistd.h>

#include "../../interposer/calibrate/gpu_rounds.h"

static void compute(void)
{
    struct gpu gpu;
    static char why[256];
    (void)gpu_rounds; /* of others */
    CHECK(gpu_start(&gpu, getenv("GPU_DRIVER"), why, sizeof why) == 0);
    gpu_launch(&gpu, 1, 20000000);
    gpu_wait(&gpu);
}

static void *abort_now(void *none)
{
    MPI_Abort(MPI_COMM_WORLD, 7);
    return none;
}

/* Who comes second finds the first within its MPI_Abort. */
static void abort_beside(void)
{
    pthread_t first;
    CHECK(pthread_create(&first, NULL, abort_now, NULL) == 0);
    usleep(2000);
}

int main(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], "session")) {
        MPI_Session session = open_session();
        compute();
        MPI_Session_finalize(&session);
    } else {
        int provided;
        MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
        compute();
        if (argc > 1 && !strcmp(argv[1], "aborts"))
            abort_beside();
        MPI_Abort(MPI_COMM_WORLD, 7);
    }
    return 0;
}
