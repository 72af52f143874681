/*
 * Erroneous calls under MPI_ERRORS_RETURN: messages longer than the room given, in MPI_Recv, MPI_Wait, MPI_Waitany,
 * MPI_Test and one of the two requests of an MPI_Waitall; a destination that does not exist. The error classes are
 * printed, so that they can be compared.
 * Rows on rank 1: the truncated receives ended as failed; the good one of the MPI_Waitall as waited. The call that was
 * never valid made no request.
 */
#include "check.h"

enum { LONG = 64, SHORT = 16, RECV = 1, WAIT = 2, WAITANY = 3, TEST = 4, BAD = 5, GOOD = 6, DONE = 7 };

static void print_class(const char *call, int error)
{
    int class;
    MPI_Error_class(error, &class);
    printf("%s: %s\n", call,
           class == MPI_SUCCESS         ? "success"
           : class == MPI_ERR_TRUNCATE  ? "MPI_ERR_TRUNCATE"
           : class == MPI_ERR_IN_STATUS ? "MPI_ERR_IN_STATUS"
           : class == MPI_ERR_RANK      ? "MPI_ERR_RANK"
                                        : "another error");
}

static MPI_Request post(char *data, int bytes, int tag)
{
    MPI_Request request;
    MPI_Irecv(data, bytes, MPI_BYTE, 0, tag, MPI_COMM_WORLD, &request);
    return request;
}

static void receive_one_by_one(char *data)
{
    MPI_Request request;
    MPI_Status status;
    int index = -1, flag = 0, error = MPI_SUCCESS;
    print_class("MPI_Recv", MPI_Recv(data, SHORT, MPI_BYTE, 0, RECV, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    request = post(data, SHORT, WAIT);
    print_class("MPI_Wait", MPI_Wait(&request, &status));
    request = post(data, SHORT, WAITANY);
    print_class("MPI_Waitany", MPI_Waitany(1, &request, &index, MPI_STATUS_IGNORE));
    request = post(data, SHORT, TEST);
    while (!flag && error == MPI_SUCCESS)
        error = MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
    print_class("MPI_Test", error);
}

static void receive_two(char *bad, char *good)
{
    MPI_Request requests[2] = {post(bad, SHORT, BAD), post(good, LONG, GOOD)};
    MPI_Status statuses[2];
    print_class("MPI_Waitall", MPI_Waitall(2, requests, statuses));
    print_class("  the short one", statuses[0].MPI_ERROR);
    if (requests[1] != MPI_REQUEST_NULL) /* MPI_ERR_PENDING: MPICH stops at the first error */
        MPI_Wait(&requests[1], &statuses[1]);
    CHECK(status_is(&statuses[1], 0, GOOD, LONG) && holds(good, LONG, GOOD));
    MPI_Request request;
    print_class("MPI_Isend to rank 99", MPI_Isend(bad, 1, MPI_BYTE, 99, 1, MPI_COMM_WORLD, &request));
}

int main(int argc, char **argv)
{
    int rank = start(&argc, &argv, 2);
    char data[LONG], other[LONG];
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (rank == 0) {
        for (int tag = RECV; tag <= GOOD; tag++) {
            fill(data, LONG, tag);
            MPI_Send(data, LONG, MPI_BYTE, 1, tag, MPI_COMM_WORLD);
        }
        MPI_Recv(NULL, 0, MPI_BYTE, 1, DONE, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        receive_one_by_one(data);
        receive_two(data, other);
        MPI_Send(NULL, 0, MPI_BYTE, 0, DONE, MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
