/*
 * What a preload library costs a process that has no MPI: /bin/true, started in turn without and with each of the libraries that are
 * named. Prints medians: from the start to the end, and on processors.
 *
 *   commands TIMES LIBRARY...
 */
#define _GNU_SOURCE
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

enum { MOST_TIMES = 10000, MOST_LIBRARIES = 8 };

static double wall_us[MOST_LIBRARIES][MOST_TIMES], processor_us[MOST_LIBRARIES][MOST_TIMES];

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, by_value);
    return values[count / 2];
}

static double us_of(struct timeval time)
{
    return (double)time.tv_sec * 1e6 + (double)time.tv_usec;
}

/* NULL: without a library. */
static void start(const char *library, double *wall, double *processor)
{
    char preload[4096];
    char *arguments[] = {"/bin/true", NULL}, *environment[] = {library ? preload : NULL, NULL};
    struct timespec begin, end;
    struct rusage used;
    pid_t pid;
    snprintf(preload, sizeof preload, "LD_PRELOAD=%s", library ? library : "");
    clock_gettime(CLOCK_MONOTONIC, &begin);
    if (posix_spawn(&pid, arguments[0], NULL, NULL, arguments, environment) != 0 || wait4(pid, NULL, 0, &used) != pid)
        exit(1);
    clock_gettime(CLOCK_MONOTONIC, &end);
    *wall = (double)(end.tv_sec - begin.tv_sec) * 1e6 + (double)(end.tv_nsec - begin.tv_nsec) / 1e3;
    *processor = us_of(used.ru_utime) + us_of(used.ru_stime);
}

int main(int argc, char **argv)
{
    int times = argc > 1 ? atoi(argv[1]) : 0, ways = argc - 1;
    if (times < 1 || times > MOST_TIMES || ways > MOST_LIBRARIES)
        return 2;
    for (int time = 0; time < times; time++)
        for (int way = 0; way < ways; way++)
            start(way ? argv[1 + way] : NULL, &wall_us[way][time], &processor_us[way][time]);
    double bare_wall = median(wall_us[0], times), bare_processor = median(processor_us[0], times);
    for (int way = 0; way < ways; way++) {
        double wall = median(wall_us[way], times), processor = median(processor_us[way], times);
        printf("  %-40s %5.0f us (+%.0f), on processors %5.0f us (+%.0f)\n", way ? strrchr(argv[1 + way], '/') : "without", wall,
               wall - bare_wall, processor, processor - bare_processor);
    }
    return 0;
}
