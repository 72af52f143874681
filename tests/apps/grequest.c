/*
 * Generalized requests: one completed by the thread that made it before it waits, one by another thread while the first one
 * waits, one cancelled, one freed. Their callbacks, which MPI calls inside MPI_Wait, call MPI themselves.
 * Rows: a request of kind generalized for each, and a call for each MPI_Grequest_complete.
 */
#include "check.h"

#include <pthread.h>
#include <unistd.h>

enum { BYTES = 6 };

static int queried, freed;

static int query(void *state, MPI_Status *status)
{
    int size;
    queried++;
    MPI_Type_size(MPI_BYTE, &size);
    MPI_Status_set_elements(status, MPI_BYTE, BYTES);
    MPI_Status_set_cancelled(status, *(int *)state);
    status->MPI_SOURCE = status->MPI_TAG = MPI_UNDEFINED;
    return MPI_SUCCESS;
}

static int release(void *state)
{
    (void)state;
    freed++;
    return MPI_SUCCESS;
}

static int cancel(void *state, int complete)
{
    *(int *)state = !complete;
    return MPI_SUCCESS;
}

static void *complete_later(void *context)
{
    usleep(20000);
    MPI_Grequest_complete(*(MPI_Request *)context);
    return NULL;
}

static void wait_for(MPI_Request *request, int cancelled)
{
    MPI_Status status;
    int flag;
    MPI_Wait(request, &status);
    MPI_Test_cancelled(&status, &flag);
    CHECK(*request == MPI_REQUEST_NULL && flag == cancelled && count_bytes(&status) == BYTES);
}

int main(int argc, char **argv)
{
    int provided, state = 0, last = 0;
    MPI_Request request, copy;
    pthread_t thread;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    CHECK(provided == MPI_THREAD_MULTIPLE);
    MPI_Grequest_start(query, release, cancel, &state, &request);
    MPI_Grequest_complete(request);
    wait_for(&request, 0);

    MPI_Grequest_start(query, release, cancel, &state, &request);
    copy = request;
    CHECK(pthread_create(&thread, NULL, complete_later, &copy) == 0);
    wait_for(&request, 0);
    pthread_join(thread, NULL);

    MPI_Grequest_start(query, release, cancel, &state, &request);
    MPI_Cancel(&request);
    MPI_Grequest_complete(request);
    wait_for(&request, 1);

    MPI_Grequest_start(query, release, cancel, &last, &request);
    copy = request;
    MPI_Request_free(&request);
    MPI_Grequest_complete(copy);
    CHECK(queried >= 3 && freed == 4);
    if (comm_rank(MPI_COMM_WORLD) == 0)
        puts("completed here, there, cancelled, freed");
    MPI_Finalize();
    return 0;
}
