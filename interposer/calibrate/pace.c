#include "module.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

int repetitions(double budget_s, double once_s, int least, int most)
{
    double affordable = once_s > 0 ? budget_s / once_s : most;
    return affordable < least ? least : affordable > most ? most : (int)affordable;
}

long sweep_size(int k, int per_octave, long most)
{
    if (k == 0)
        return 0;
    long last = 0, size = 0;
    for (int step = 0, found = 0; found < k; step++) {
        size = lround(exp2((double)step / per_octave));
        found += size != last; /* small sizes lie less than 1 apart */
        last = size;
    }
    return size <= most ? size : -1;
}

static int wanted(const struct bench *bench)
{
    return bench->rank == 0 && getenv("LAPSCOPE_CALIBRATE_PROGRESS");
}

void show_progress(const struct bench *bench, const char *what, long bytes)
{
    if (wanted(bench))
        fprintf(stderr, "\rlapscope: measuring %-24s %9ld bytes", what, bytes);
}

void end_progress(const struct bench *bench)
{
    if (wanted(bench))
        fprintf(stderr, "\r%60s\r", "");
}
