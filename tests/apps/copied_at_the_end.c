/*
 * A library that says farewell when MPI ends: from a callback of MPI_COMM_SELF, within MPI_Finalize, to a receiver that comes late.
 */
#include "check.h"

#include <time.h>

enum { BYTES = 1 << 20 };

static int farewell(MPI_Comm comm, int key, void *value, void *state)
{
    (void)comm, (void)key, (void)value, (void)state;
    char *data = malloc(BYTES);
    CHECK(data != NULL);
    if (comm_rank(MPI_COMM_WORLD) == 0) {
        fill(data, BYTES, 1);
        MPI_Send(data, BYTES, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
        memset(data, 0, BYTES);
    } else {
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
        MPI_Recv(data, BYTES, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK(holds(data, BYTES, 1));
        puts("farewell");
    }
    free(data);
    return MPI_SUCCESS;
}

int main(int argc, char **argv)
{
    int key;
    start(&argc, &argv, 2);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, farewell, &key, NULL);
    MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL);
    MPI_Finalize();
    return 0;
}
