/*
 * Two ranks leave over, at MPI_Finalize, what programs forget; with the argument `nothing` they forget nothing, with `cancels` one cancels
 * and frees receives. Messages are small, so that no MPI needs their receives. With `hangs` rank 0 has a synchronous send under way that
 * nobody receives, and does not leave MPI_Finalize. Some MPIs wait there for such a send; a function that MPI calls there makes it so
 * with all. With `crashes` rank 1 dies there.
 */
#include "work.h"

#include <signal.h>
#include <unistd.h>

enum { FORGOTTEN = 3, UNRECEIVED = 2, COMMUNICATORS = 4 };

static char out[8], in[8];

/* What rank 0 never waits for, rank 1 receives. */
SITE void send_without_wait(int is_forgotten)
{
    MPI_Request requests[FORGOTTEN];
    for (int i = 0; i < FORGOTTEN; i++)
        MPI_Isend(out, sizeof out, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &requests[i]);
    if (!is_forgotten)
        MPI_Waitall(FORGOTTEN, requests, MPI_STATUSES_IGNORE);
}

SITE void send_unreceived(void)
{
    MPI_Send(out, sizeof out, MPI_BYTE, 1, 2, MPI_COMM_WORLD);
}

/* One gets its message, and nobody looks; for the others none is sent, of which one is freed. */
SITE void receive_without_wait(void)
{
    MPI_Request requests[3];
    MPI_Irecv(in, sizeof in, MPI_BYTE, 0, 3, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(in, sizeof in, MPI_BYTE, 0, 4, MPI_COMM_WORLD, &requests[1]);
    MPI_Irecv(in, sizeof in, MPI_BYTE, 0, 7, MPI_COMM_WORLD, &requests[2]);
    MPI_Request_free(&requests[2]);
}

/* To cancel is not to complete; one that is freed besides is nobody's any more. Of the third, freed, the message comes. */
SITE void receive_and_cancel(int rank)
{
    MPI_Request requests[3];
    for (int i = 0; rank == 1 && i < 3; i++) {
        MPI_Irecv(in, sizeof in, MPI_BYTE, 0, 8 + i, MPI_COMM_WORLD, &requests[i]);
        if (i < 2)
            MPI_Cancel(&requests[i]);
        if (i > 0)
            MPI_Request_free(&requests[i]);
    }
    if (rank == 0)
        MPI_Send(out, sizeof out, MPI_BYTE, 1, 10, MPI_COMM_WORLD);
}

SITE void make_persistent(int is_forgotten)
{
    MPI_Request kept, freed;
    MPI_Send_init(out, sizeof out, MPI_BYTE, 0, 5, MPI_COMM_SELF, &kept);
    MPI_Send_init(out, sizeof out, MPI_BYTE, 0, 5, MPI_COMM_SELF, &freed);
    MPI_Request_free(&freed);
    if (!is_forgotten)
        MPI_Request_free(&kept);
}

/* Rank 1 has no colour: it gets none. */
SITE void make_communicators(int rank, int is_forgotten)
{
    MPI_Comm comms[COMMUNICATORS], split;
    MPI_Comm_split(MPI_COMM_WORLD, rank == 0 ? 0 : MPI_UNDEFINED, 0, &split);
    if (split != MPI_COMM_NULL)
        MPI_Comm_free(&split);
    for (int i = 0; i < COMMUNICATORS; i++)
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
    for (int i = 0; i < (is_forgotten ? 1 : COMMUNICATORS); i++)
        MPI_Comm_free(&comms[i]);
}

/* The launcher kills the other rank then, which must be in its MPI_Finalize: it has half a second to come there from a barrier. */
static int die(MPI_Comm comm, int key, void *value, void *extra)
{
    (void)comm, (void)key, (void)value, (void)extra;
    usleep(500000);
    raise(SIGKILL);
    return MPI_SUCCESS;
}

static int stay(MPI_Comm comm, int key, void *value, void *extra)
{
    (void)comm, (void)key, (void)value, (void)extra;
    for (int64_t end = now_ns() + 120 * INT64_C(1000000000); now_ns() < end;)
        continue;
    return MPI_SUCCESS;
}

static void end_badly(int rank, int crashes)
{
    MPI_Request request;
    int key;
    if (!crashes && rank == 0)
        MPI_Issend(out, sizeof out, MPI_BYTE, 1, 6, MPI_COMM_WORLD, &request);
    if (rank == crashes) {
        MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, crashes ? die : stay, &key, NULL);
        MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    fprintf(stderr, "here %d\n", rank);
    MPI_Finalize();
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    CHECK(comm_size(MPI_COMM_WORLD) == 2);
    int rank = comm_rank(MPI_COMM_WORLD), is_forgotten = !is_asked(argc, argv, "nothing");
    if (is_asked(argc, argv, "hangs") || is_asked(argc, argv, "crashes")) {
        end_badly(rank, is_asked(argc, argv, "crashes"));
        return 0;
    }
    if (is_asked(argc, argv, "cancels")) {
        receive_and_cancel(rank);
        MPI_Finalize();
        return 0;
    }
    if (rank == 0)
        send_without_wait(is_forgotten);
    else
        for (int i = 0; i < FORGOTTEN; i++)
            MPI_Recv(in, sizeof in, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (is_forgotten && rank == 0) {
        for (int i = 0; i < UNRECEIVED; i++)
            send_unreceived();
        MPI_Send(out, sizeof out, MPI_BYTE, 1, 3, MPI_COMM_WORLD);
    } else if (is_forgotten) {
        receive_without_wait();
    }
    make_persistent(is_forgotten);
    make_communicators(rank, is_forgotten);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
