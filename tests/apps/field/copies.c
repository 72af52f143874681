/*
 * Question: I send with MPI_Bsend so that nobody waits, and still the receiver waits as long as the sender computes. Why?
 * Truth:    a copy that is too large to be sent at once moves only while the sender is inside MPI.
 * Cure:     look into MPI now and then in the sender's computation (argument "cured").
 */
#include "../work.h"

enum { BYTES = 1 << 20, ROUNDS = 30, PIECES = 10, PIECE_NS = 1000000 };

SITE void send_and_compute(char *data, int cured)
{
    int found;
    MPI_Bsend(data, BYTES, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
    for (int piece = 0; piece < PIECES; piece++) {
        compute(PIECE_NS);
        if (cured)
            MPI_Iprobe(1, 1, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
    }
    MPI_Recv(data, 1, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

SITE void receive_and_compute(char *data)
{
    MPI_Recv(data, BYTES, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    compute((int64_t)PIECES * PIECE_NS);
    MPI_Send(data, 1, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    int rank = start(&argc, &argv, 2), cured = is_cured(argc, argv);
    int space = 2 * (BYTES + MPI_BSEND_OVERHEAD);
    char *data = make_buffer(BYTES), *copies = make_buffer(space);
    MPI_Buffer_attach(copies, space);
    calibrate_work();
    MPI_Barrier(MPI_COMM_WORLD);
    for (int round = 0; round < ROUNDS; round++)
        if (rank == 0)
            send_and_compute(data, cured);
        else
            receive_and_compute(data);
    MPI_Buffer_detach(&copies, &space);
    free(copies);
    free(data);
    MPI_Finalize();
    return 0;
}
