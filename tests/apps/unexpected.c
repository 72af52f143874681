/*
 * Messages that come before their receives. The argument says how:
 *
 *   ahead      rank 0 sends all of its messages while rank 1 waits for another one, which is sent last
 *   buffered   as `ahead`, by MPI_Bsend
 *   behind     rank 0 sends all of its messages, and rank 1 probes, which moves them, before it receives them in order
 *   sleeping   rank 1 is in no call of MPI while they are sent
 *   early      rank 1 posts all receives first
 *   throttled  as `ahead`, in blocks that end with a synchronous send
 *   flood      all others send to rank 0, which is in a barrier, and receives from any source
 *
 * Rank 1 of `ahead` prints how many bytes its process has grown by.
 */
#include <unistd.h>

#include "work.h"

enum { MESSAGES = 3000, BYTES = 2000, FEW = 400, SMALL = 64, BLOCK = 50 };

static char buffer[BYTES], *apart;
static MPI_Request requests[MESSAGES];

static long resident(void)
{
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    CHECK(file && fscanf(file, "%*d %ld", &pages) == 1);
    fclose(file);
    return pages * sysconf(_SC_PAGESIZE);
}

SITE void send_all(int to, int count, int bytes)
{
    for (int i = 0; i < count; i++)
        MPI_Send(buffer, bytes, MPI_BYTE, to, 1, MPI_COMM_WORLD);
}

SITE void receive_all(int from, int count)
{
    for (int i = 0; i < count; i++)
        MPI_Recv(buffer, BYTES, MPI_BYTE, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void ahead(int rank)
{
    if (rank == 0) {
        send_all(1, MESSAGES, BYTES);
        MPI_Send(buffer, 0, MPI_BYTE, 1, 2, MPI_COMM_WORLD);
        return;
    }
    long before = resident();
    MPI_Recv(buffer, 0, MPI_BYTE, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    printf("grown %ld\n", resident() - before);
    receive_all(0, MESSAGES);
}

static void buffered(int rank)
{
    int bytes = MESSAGES * (BYTES + MPI_BSEND_OVERHEAD);
    void *attached = malloc((size_t)bytes);
    MPI_Buffer_attach(attached, bytes);
    for (int i = 0; rank == 0 && i < MESSAGES; i++)
        MPI_Bsend(buffer, BYTES, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1)
        receive_all(0, MESSAGES);
    MPI_Buffer_detach(&attached, &bytes);
    free(attached);
}

static void behind(int rank)
{
    MPI_Win window;
    MPI_Aint size;
    int unit;
    volatile int *is_sent; /* no message says so, as those that are sent after all others would be received out of their order */
    MPI_Win_allocate_shared(rank == 0 ? sizeof(int) : 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &is_sent, &window);
    MPI_Win_shared_query(window, 0, &size, &unit, &is_sent);
    if (rank == 0)
        *is_sent = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        send_all(1, MESSAGES, BYTES);
        *is_sent = 1;
    } else {
        for (int flag; !*is_sent; usleep(20)) // the sender may need the processor
            MPI_Iprobe(0, 3, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        receive_all(0, MESSAGES);
    }
    MPI_Win_free(&window);
}

static void sleeping(int rank)
{
    if (rank == 0) {
        send_all(1, FEW, SMALL);
    } else {
        sleep(1);
        receive_all(0, FEW);
    }
}

static void early(int rank)
{
    for (int i = 0; rank == 1 && i < MESSAGES; i++)
        MPI_Irecv(apart + (size_t)i * BYTES, BYTES, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &requests[i]);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        send_all(1, MESSAGES, BYTES);
    else
        MPI_Waitall(MESSAGES, requests, MPI_STATUSES_IGNORE);
}

static void throttled(int rank)
{
    for (int block = 0; block < MESSAGES / BLOCK; block++) {
        if (rank == 0) {
            send_all(1, BLOCK - 1, BYTES);
            MPI_Ssend(buffer, BYTES, MPI_BYTE, 1, 2, MPI_COMM_WORLD);
        } else {
            MPI_Recv(buffer, BYTES, MPI_BYTE, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            receive_all(0, BLOCK - 1);
        }
    }
}

static void flood(int rank)
{
    if (rank > 0)
        send_all(0, MESSAGES, BYTES);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        receive_all(MPI_ANY_SOURCE, MESSAGES * (comm_size(MPI_COMM_WORLD) - 1));
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    CHECK(argc == 2 && (apart = calloc(MESSAGES, BYTES)));
    int rank = comm_rank(MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    if (strcmp(argv[1], "ahead") == 0)
        ahead(rank);
    else if (strcmp(argv[1], "buffered") == 0)
        buffered(rank);
    else if (strcmp(argv[1], "behind") == 0)
        behind(rank);
    else if (strcmp(argv[1], "sleeping") == 0)
        sleeping(rank);
    else if (strcmp(argv[1], "early") == 0)
        early(rank);
    else if (strcmp(argv[1], "throttled") == 0)
        throttled(rank);
    else
        flood(rank);
    MPI_Finalize();
    free(apart);
    return 0;
}
