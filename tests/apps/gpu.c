/*
 * gpu: rank 0 sends from memory of a device and from managed memory (gpu_driver.c, by an MPI that may, gpu_mpi.c) and from its own,
 * rank 1 receives into these: by calls that block, by requests, and by persistent ones. At the end both exchange data without
 * messages. Before all that both wait within a call of the driver, which holds its lock, while a message is under way. The driver, a
 * file that GPU_DRIVER names, is opened when MPI is up, as CUDA's runtime does it. Prints how many of the messages were right.
 */
#include "check.h"

#include <dlfcn.h>

enum { COUNT = 1000, ROUNDS = 18, KINDS = 3, STARTS = 2, MESSAGES = ROUNDS + KINDS + STARTS + 1 };

static void (*open_memory)(const void *, int);
static int rank, good;

static void put(double *buffer, int number)
{
    open_memory(buffer, 1);
    for (int i = 0; i < COUNT; i++)
        buffer[i] = rank == 0 ? number + i : -1;
    open_memory(buffer, 0);
}

static void look(const double *buffer, int number)
{
    int is_right = 1;
    open_memory(buffer, 1);
    for (int i = 0; i < COUNT; i++)
        is_right &= buffer[i] == number + i;
    open_memory(buffer, 0);
    good += rank == 1 && is_right;
}

static void wait_in_driver(void (*wait)(double))
{
    MPI_Request requests[2];
    int out = rank, in = -1;
    MPI_Irecv(&in, 1, MPI_INT, 1 - rank, MESSAGES, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(&out, 1, MPI_INT, 1 - rank, MESSAGES, MPI_COMM_WORLD, &requests[1]);
    for (int i = 0; i < 10; i++)
        wait(0.005);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    CHECK(in == 1 - rank);
}

static void block(double *buffer, int number)
{
    put(buffer, number);
    if (rank == 0)
        MPI_Send(buffer, COUNT, MPI_DOUBLE, 1, number, MPI_COMM_WORLD);
    else
        MPI_Recv(buffer, COUNT, MPI_DOUBLE, 0, number, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    look(buffer, number);
}

/* What is sent lies where the datatype says, away from the address that MPI is given. */
static void displace(double *near, double *buffer, int number)
{
    MPI_Datatype type;
    MPI_Aint places[2];
    int count = COUNT;
    MPI_Get_address(near, &places[0]);
    MPI_Get_address(buffer, &places[1]);
    MPI_Aint away = places[1] - places[0];
    MPI_Type_create_hindexed(1, &count, &away, MPI_DOUBLE, &type);
    MPI_Type_commit(&type);
    put(buffer, number);
    if (rank == 0)
        MPI_Send(near, 1, type, 1, number, MPI_COMM_WORLD);
    else
        MPI_Recv(near, 1, type, 0, number, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    look(buffer, number);
    MPI_Type_free(&type);
}

static void request(double *buffer, int number)
{
    MPI_Request request;
    put(buffer, number);
    if (rank == 0)
        MPI_Isend(buffer, COUNT, MPI_DOUBLE, 1, number, MPI_COMM_WORLD, &request);
    else
        MPI_Irecv(buffer, COUNT, MPI_DOUBLE, 0, number, MPI_COMM_WORLD, &request);
    MPI_Waitall(1, &request, MPI_STATUSES_IGNORE);
    look(buffer, number);
}

static void persist(double *buffer, int number)
{
    MPI_Request request;
    if (rank == 0)
        MPI_Send_init(buffer, COUNT, MPI_DOUBLE, 1, number, MPI_COMM_WORLD, &request);
    else
        MPI_Recv_init(buffer, COUNT, MPI_DOUBLE, 0, number, MPI_COMM_WORLD, &request);
    for (int start = 0; start < STARTS; start++) {
        put(buffer, number + start);
        MPI_Startall(1, &request);
        MPI_Waitall(1, &request, MPI_STATUSES_IGNORE);
        look(buffer, number + start);
    }
    MPI_Request_free(&request);
}

/* Requests that are none of a message: of a collective, from the device and from own memory, and one-sided, into managed memory. */
static void exchange(double *device, double *managed, double *own)
{
    static double out[2], in[2 * 2];
    int ones[2] = {1, 1}, places[2] = {0, 1}, bytes[2] = {0, sizeof *out};
    MPI_Datatype types[2] = {MPI_DOUBLE, MPI_DOUBLE};
    MPI_Request requests[3];
    MPI_Win window;
    put(device, 7);
    own[0] = out[0] = out[1] = rank;
    MPI_Win_create(own, sizeof *own, sizeof *own, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Win_lock_all(0, window);
    MPI_Ialltoallv(device, ones, places, MPI_DOUBLE, in, ones, places, MPI_DOUBLE, MPI_COMM_WORLD, &requests[0]);
    MPI_Ialltoallw(out, ones, bytes, types, in + 2, ones, bytes, types, MPI_COMM_WORLD, &requests[1]);
    MPI_Rget(managed, 1, MPI_DOUBLE, 1 - rank, 0, 1, MPI_DOUBLE, window, &requests[2]);
    MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
    MPI_Win_unlock_all(window);
    MPI_Win_free(&window);
    open_memory(managed, 1);
    CHECK(in[0] == 7 + rank && in[1] == -1 && in[2] == 0 && in[3] == 1 && managed[0] == 1 - rank);
    open_memory(managed, 0);
}

int main(int argc, char **argv)
{
    static double own[COUNT];
    void *device = NULL, *managed = NULL;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    void *driver = dlopen(getenv("GPU_DRIVER"), RTLD_NOW | RTLD_GLOBAL);
    CHECK(driver);
    int (*allocate)(void **, size_t, int) = (int (*)(void **, size_t, int))dlsym(driver, "gpu_allocate");
    void (*wait)(double) = (void (*)(double))dlsym(driver, "gpu_wait");
    open_memory = (void (*)(const void *, int))dlsym(driver, "gpu_open");
    CHECK(allocate && wait && open_memory && allocate(&device, sizeof own, 0) == 0 && allocate(&managed, sizeof own, 1) == 0);
    double *buffers[KINDS] = {device, own, managed};
    wait_in_driver(wait);
    for (int round = 0; round < ROUNDS; round++)
        block(buffers[round % KINDS], round);
    for (int kind = 0; kind < KINDS; kind++)
        request(buffers[kind], ROUNDS + kind);
    persist(device, ROUNDS + KINDS);
    displace(own, device, ROUNDS + KINDS + STARTS);
    exchange(device, managed, own);
    if (rank == 1)
        printf("%d of %d right\n", good, MESSAGES);
    MPI_Finalize();
    return 0;
}
