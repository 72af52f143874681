/*
 * endless COUNTER MICROSECONDS: sends itself messages of ever other sizes until a timer's signal kills it, at whatever
 * instruction it has come to. How many rounds were complete is in the file COUNTER, which outlives it.
 * Rows: that many sends and receives ended by MPI_Waitall, or one more of each.
 */
#include "check.h"

#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

enum { MOST = 5000 };

static volatile uint64_t *counter_in(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT, 0600);
    CHECK(fd >= 0 && ftruncate(fd, sizeof(uint64_t)) == 0);
    void *map = mmap(NULL, sizeof(uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(map != MAP_FAILED);
    return map;
}

int main(int argc, char **argv)
{
    static char out[MOST], in[MOST];
    MPI_Request requests[2];
    MPI_Init(&argc, &argv);
    CHECK(argc == 3);
    volatile uint64_t *counter = counter_in(argv[1]);
    struct itimerval timer = {.it_value = {.tv_usec = atoi(argv[2])}};
    setitimer(ITIMER_REAL, &timer, NULL);
    for (uint64_t round = 0;; round++) {
        int bytes = (int)(round * 7 % MOST), tag = (int)(round % 3);
        MPI_Irecv(in, MOST, MPI_BYTE, 0, tag, MPI_COMM_SELF, &requests[0]);
        MPI_Isend(out, bytes, MPI_BYTE, 0, tag, MPI_COMM_SELF, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        *counter = round + 1;
    }
}
