/*
 * Large messages that do not fit into the room given for them, among others that do. Under MPI_ERRORS_RETURN MPI_Wait says
 * MPI_ERR_TRUNCATE; an error handler of the program is called from within MPI_Wait, and never while the program computes.
 *
 * The handlers are those of MPI_COMM_WORLD: MPICH 4.0 does not know of a truncated message which communicator it came by. Open MPI
 * 4.1 writes beyond the room given for a message that another process' memory is read for, so there is more of it.
 */
#include "traffic.h"

enum { LONG = 200003, SHORT = 1000, TAG = 50, STEPS = 300000, ROUNDS = 60 };

static int handled;
static MPI_Errhandler handler;

static void on_error(MPI_Comm *comm, int *error, ...)
{
    int class;
    (void)comm;
    CHECK(!computing);
    MPI_Error_class(*error, &class);
    CHECK(class == MPI_ERR_TRUNCATE);
    handled++;
}

/* Returns what the receiver's MPI_Wait returns. */
static int send_too_much(void)
{
    static char out[LONG], in[LONG];
    MPI_Request send, receive;
    MPI_Irecv(in, SHORT, MPI_BYTE, traffic.peer, TAG, MPI_COMM_WORLD, &receive);
    MPI_Isend(out, LONG, MPI_BYTE, traffic.peer, TAG, MPI_COMM_WORLD, &send);
    computing = 1;
    CHECK(arithmetic(STEPS) < 2.0);
    computing = 0;
    int error = MPI_Wait(&receive, MPI_STATUS_IGNORE);
    CHECK(receive == MPI_REQUEST_NULL && MPI_Wait(&send, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    return error;
}

static void work(int round)
{
    int class;
    computing = 0;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Error_class(send_too_much(), &class);
    CHECK(class == MPI_ERR_TRUNCATE);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
    send_too_much(); /* behind a handler that returns, MPIs do not agree on what it returns */
    CHECK(handled == round + 1);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

int main(int argc, char **argv)
{
    int rank = start(&argc, &argv, 2);
    MPI_Comm_create_errhandler(on_error, &handler);
    under_traffic(argc, argv, ROUNDS, work);
    MPI_Errhandler_free(&handler);
    if (rank == 0)
        puts("what was too long was said to be");
    MPI_Finalize();
    return 0;
}
