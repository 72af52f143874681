/*
 * Question: a runtime with a progress loop of its own: one rank answers requests while it works. What would it gain if
 *           messages moved by themselves?
 * Truth:    a look that finds nothing costs nothing: the rank works on, and looks again.
 * Cure:     answer sooner: look more often (argument "cured").
 */
#include "../work.h"

enum { BYTES = 1 << 20, TASKS = 20, PIECES = 450, PIECE_NS = 1000000, OFTEN = 10 };

SITE void work_and_answer(char *data, int cured)
{
    MPI_Request request;
    int answered = 0, done;
    MPI_Irecv(data, BYTES, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &request);
    for (int piece = 0; piece < PIECES; piece++) {
        for (int part = 0; part < OFTEN; part++) {
            compute(PIECE_NS / OFTEN);
            if ((cured || (part == 0 && piece % 10 == 0)) && answered < TASKS) {
                MPI_Test(&request, &done, MPI_STATUS_IGNORE);
                if (done && ++answered < TASKS)
                    MPI_Irecv(data, BYTES, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &request);
            }
        }
    }
    for (; answered < TASKS; answered++) {
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        if (answered + 1 < TASKS)
            MPI_Irecv(data, BYTES, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &request);
    }
}

SITE void make_tasks(char *data)
{
    for (int task = 0; task < TASKS; task++) {
        compute(PIECE_NS * 5);
        MPI_Send(data, BYTES, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
    }
    compute((int64_t)PIECE_NS * 300);
}

int main(int argc, char **argv)
{
    int rank = start(&argc, &argv, 2);
    int cured = is_cured(argc, argv);
    char *data = make_buffer(BYTES);
    calibrate_work();
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        work_and_answer(data, cured);
    else
        make_tasks(data);
    MPI_Barrier(MPI_COMM_WORLD);
    free(data);
    MPI_Finalize();
    return 0;
}
