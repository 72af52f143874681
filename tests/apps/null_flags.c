/* A program that gives MPI no place for its answer, and asks for errors to be returned. Its argument says in which call. */
#include "check.h"

int main(int argc, char **argv)
{
    MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    MPI_Status statuses[2];
    int index, indices[2], error = MPI_SUCCESS;
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    switch (argc > 1 ? atoi(argv[1]) : 0) {
    case 0: error = MPI_Test(requests, NULL, statuses); break;
    case 1: error = MPI_Testall(2, requests, NULL, statuses); break;
    case 2: error = MPI_Testany(2, requests, &index, NULL, statuses); break;
    case 3: error = MPI_Testsome(2, requests, NULL, indices, statuses); break;
    case 4: error = MPI_Waitsome(2, requests, NULL, indices, statuses); break;
    default: error = MPI_Request_get_status(requests[0], NULL, statuses); break;
    }
    puts(error == MPI_SUCCESS ? "no error" : "an error");
    fflush(stdout);
    _Exit(3);
}
