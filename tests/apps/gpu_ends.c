/*
 * gpu_ends session|abort: a kernel of 20 ms on the stand-in gpu_clockwork.c, which GPU_DRIVER names, and at once the end of MPI that is
 * not MPI_Finalize: that of the only session, or MPI_Abort with the code 7.
 */
#include "session.h"

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

int main(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], "session")) {
        MPI_Session session = open_session();
        compute();
        MPI_Session_finalize(&session);
    } else {
        MPI_Init(&argc, &argv);
        compute();
        MPI_Abort(MPI_COMM_WORLD, 7);
    }
    return 0;
}
