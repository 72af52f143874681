/*
 * Regions and steps marked by MPI_Pcontrol, with pauses in between; names that are none, and pointers that point nowhere.
 * Rows: marks of regions with a name, by the thread that made them, and of steps; a mark resumes what was paused.
 */
#include "check.h"

#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>

enum { STEPS = 5, BYTES = 8, PAGE = 4096 };

static void exchange(int rank, int tag)
{
    char data[BYTES];
    fill(data, BYTES, tag);
    if (rank == 0)
        MPI_Send(data, BYTES, MPI_BYTE, 1, tag, MPI_COMM_WORLD);
    else
        MPI_Recv(data, BYTES, MPI_BYTE, 0, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(holds(data, BYTES, tag));
}

static void mark_what_is_no_name(void)
{
    char *pages = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char longer[100];
    memset(pages, 'x', 2 * PAGE);
    memset(longer, 'x', sizeof longer);
    longer[99] = 0;
    munmap(pages + PAGE, PAGE);
    MPI_Pcontrol(1, "");
    MPI_Pcontrol(1, "line\n");
    MPI_Pcontrol(-1, "\x1b[31m");
    MPI_Pcontrol(1, "\xff\xfe");
    MPI_Pcontrol(1, longer);
    MPI_Pcontrol(1, (void *)8);
    MPI_Pcontrol(-1, (void *)-1);
    MPI_Pcontrol(1, (void *)0x800000000000);
    MPI_Pcontrol(1, pages + PAGE - 3);
    MPI_Pcontrol(1, pages + PAGE);
    MPI_Pcontrol(-1, NULL);
    MPI_Pcontrol(3, "level");
    memcpy(pages + PAGE - 4, "end", 4);
    MPI_Pcontrol(1, pages + PAGE - 4);
}

static void *mark_in_thread(void *name)
{
    MPI_Pcontrol(1, name);
    MPI_Pcontrol(-1, name);
    return NULL;
}

int main(int argc, char **argv)
{
    int provided, rank;
    pthread_t thread;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    errno = 0;
    for (int step = 0; step < STEPS; step++) {
        MPI_Pcontrol(2);
        MPI_Pcontrol(1, "halo exchange");
        exchange(rank, 1);
        MPI_Pcontrol(-1, "halo exchange");
    }
    mark_what_is_no_name();
    CHECK(errno == 0);
    MPI_Pcontrol(0);
    exchange(rank, 2);
    MPI_Pcontrol(1, "l\xc3\xb6sen"); /* resumes, too */
    exchange(rank, 3);
    MPI_Pcontrol(0, "paused");
    exchange(rank, 4);
    MPI_Pcontrol(2);
    exchange(rank, 5);
    CHECK(pthread_create(&thread, NULL, mark_in_thread, "thread") == 0);
    pthread_join(thread, NULL);
    if (rank == 0)
        puts("marked");
    MPI_Finalize();
    return 0;
}
