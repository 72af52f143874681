/*
 * Question: the time goes to MPI_Probe, to a loop of MPI_Iprobe, to MPI_Comm_dup, to MPI_Buffer_detach (argument). Are these slow?
 * Truth:    no: rank 1 computes five times as long, and they wait for it.
 * Cure:     even work (argument "cured").
 */
#include "../work.h"
#include <string.h>

enum { BYTES = 1 << 20, ROUNDS = 30, SHORT_NS = 2000000, LONG_NS = 10000000 };

static char data[BYTES];

SITE void probe(int other, int loops)
{
    int found = !loops;
    MPI_Request sent;
    MPI_Isend(&data[0], 1, MPI_BYTE, other, 0, MPI_COMM_WORLD, &sent);
    if (!loops)
        MPI_Probe(other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    while (!found)
        MPI_Iprobe(other, 0, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
    MPI_Recv(&data[1], 1, MPI_BYTE, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(&sent, MPI_STATUS_IGNORE);
}

SITE void duplicate(void)
{
    MPI_Comm made;
    MPI_Comm_dup(MPI_COMM_WORLD, &made);
    MPI_Comm_free(&made);
}

SITE void empty_buffer(int rank, void *buffer, int size)
{
    if (rank == 1) {
        MPI_Recv(data, BYTES, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        return;
    }
    MPI_Buffer_attach(buffer, size);
    MPI_Bsend(data, BYTES, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
    MPI_Buffer_detach(&buffer, &size);
}

int main(int argc, char **argv)
{
    int rank = start(&argc, &argv, 2), cured = is_cured(argc, argv);
    int64_t own = rank == 1 ? LONG_NS : SHORT_NS;
    const char *how = argc > 1 ? argv[1] : "probe";
    int size = BYTES + MPI_BSEND_OVERHEAD;
    void *buffer = make_buffer(size);
    calibrate_work();
    for (int round = 0; round < ROUNDS; round++) {
        compute(cured ? (SHORT_NS + LONG_NS) / 2 : own);
        if (!strcmp(how, "dup"))
            duplicate();
        else if (!strcmp(how, "detach"))
            empty_buffer(rank, buffer, size);
        else
            probe(1 - rank, !strcmp(how, "iprobe"));
    }
    free(buffer);
    MPI_Finalize();
    return 0;
}
