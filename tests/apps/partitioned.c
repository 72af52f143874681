/*
 * Partitioned messages: three rounds in which the sender makes four partitions ready by each of the three calls, and the
 * receiver looks for them with MPI_Parrived.
 * Rows: a call for each init and each that makes partitions ready, with their bytes; a request for each round, with the
 * bytes of all partitions.
 */
#include "check.h"

enum { PARTITIONS = 4, COUNT = 10, ALL = PARTITIONS * COUNT, ROUNDS = 3, TAG = 8 };

static int data[ALL];

static void send_rounds(void)
{
    MPI_Request request;
    int list[] = {0, 2};
    MPI_Psend_init(data, PARTITIONS, COUNT, MPI_INT, 1, TAG, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    for (int round = 0; round < ROUNDS; round++) {
        fill(data, sizeof data, round);
        MPI_Start(&request);
        MPI_Pready(3, request);
        if (round == 0) {
            MPI_Pready_range(0, 2, request);
        } else {
            MPI_Pready(1, request);
            MPI_Pready_list(2, list, request);
        }
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Request_free(&request);
}

static void receive_rounds(void)
{
    MPI_Request request;
    MPI_Precv_init(data, PARTITIONS, COUNT, MPI_INT, 0, TAG, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    for (int round = 0; round < ROUNDS; round++) {
        int flag = 0;
        MPI_Start(&request);
        while (!flag)
            MPI_Parrived(request, 3, &flag);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        CHECK(holds(data, sizeof data, round));
    }
    MPI_Request_free(&request);
}

int main(int argc, char **argv)
{
    if (start(&argc, &argv, 2) == 0) {
        send_rounds();
        printf("%d partitions, %d times\n", PARTITIONS, ROUNDS);
    } else {
        receive_rounds();
    }
    MPI_Finalize();
    return 0;
}
