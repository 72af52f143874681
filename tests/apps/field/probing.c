/*
 * Question: a worker looks for messages by MPI_Iprobe between pieces of its work, and its partner's MPI_Send takes 100 ms. Is
 *           the worker too slow?
 * Truth:    a message of this size waits until it is received, and it is received where the worker looks next.
 * Cure:     MPI_Irecv before the work, and MPI_Test in it (argument "cured").
 */
#include "../work.h"

enum { BYTES = 1 << 20, TASKS = 8, LOOKS = 15, PIECES = 100, PIECE_NS = 1000000 };

SITE void work_and_probe(char *data)
{
    int received = 0, is_there;
    for (int look = 0; look < LOOKS; look++) {
        compute((int64_t)PIECES * PIECE_NS);
        MPI_Iprobe(1, 0, MPI_COMM_WORLD, &is_there, MPI_STATUS_IGNORE);
        if (is_there && received < TASKS) {
            MPI_Recv(data, BYTES, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            received++;
        }
    }
    for (; received < TASKS; received++)
        MPI_Recv(data, BYTES, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

SITE void work_and_test(char *data)
{
    MPI_Request request;
    int received = 0, done;
    MPI_Irecv(data, BYTES, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &request);
    for (int piece = 0; piece < LOOKS * PIECES; piece++) {
        compute(PIECE_NS);
        if (received == TASKS)
            continue;
        MPI_Test(&request, &done, MPI_STATUS_IGNORE);
        if (done && ++received < TASKS)
            MPI_Irecv(data, BYTES, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &request);
    }
    while (received < TASKS) {
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        if (++received < TASKS)
            MPI_Irecv(data, BYTES, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &request);
    }
}

SITE void make_tasks(char *data)
{
    for (int task = 0; task < TASKS; task++) {
        compute((int64_t)PIECE_NS * 5);
        MPI_Send(data, BYTES, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
    }
    compute((int64_t)PIECE_NS * PIECES * LOOKS / 2);
}

int main(int argc, char **argv)
{
    int rank = start(&argc, &argv, 2);
    char *data = make_buffer(BYTES);
    calibrate_work();
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1)
        make_tasks(data);
    else if (is_cured(argc, argv))
        work_and_test(data);
    else
        work_and_probe(data);
    MPI_Barrier(MPI_COMM_WORLD);
    free(data);
    MPI_Finalize();
    return 0;
}
