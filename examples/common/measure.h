/*
 * Of what the experiments share, all that needs no MPI: computation in fixed amounts, medians with spread, options, and
 * tables that people and `lapscope bench` read alike (README.md beside this directory).
 *
 * Computation is a number of rounds, calibrated once at the start, never "until a deadline": a deadline hides the time that
 * others take from the processor, and flatters every result. How long it took is measured each time.
 */
#ifndef MEASURE_H
#define MEASURE_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MOST_REPETITIONS 1001

/* --- computation -------------------------------------------------------------------------------------------------- */

static double rounds_per_us;

/* Microseconds of a clock that the ranks of one machine share. */
static inline double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static inline double within(double value, double low, double high)
{
    return value < low ? low : value > high ? high : value;
}

static inline void do_rounds(int64_t rounds)
{
    static volatile double result;
    double x = 0.3;
    for (int64_t i = 0; i < rounds; i++)
        x = 3.7 * x * (1.0 - x);
    result = x;
    (void)result;
}

/* Computes what takes `us` on a processor of one's own; returns how long it took. */
static inline double compute(double us)
{
    double begin = now_us();
    do_rounds((int64_t)(us * rounds_per_us));
    return now_us() - begin;
}

/* --- spread ------------------------------------------------------------------------------------------------------- */

/* Median, first and third quartile. */
struct spread {
    double median, low, high;
};

static inline int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static inline double quantile(const double *sorted, int count, double fraction)
{
    double place = fraction * (count - 1);
    int below = (int)place;
    double above = below + 1 < count ? sorted[below + 1] : sorted[below];
    return sorted[below] + (place - below) * (above - sorted[below]);
}

static inline struct spread spread_of(const double *values, int count)
{
    double sorted[MOST_REPETITIONS];
    memcpy(sorted, values, (size_t)count * sizeof *values);
    qsort(sorted, (size_t)count, sizeof *sorted, compare_doubles);
    return (struct spread){quantile(sorted, count, 0.5), quantile(sorted, count, 0.25), quantile(sorted, count, 0.75)};
}

/* --- options ------------------------------------------------------------------------------------------------------ */

/* Reads "1024,65536" or "1K,64K,4M"; returns how many there are, 0 when the text is no such list or longer than `most`. */
static inline int read_sizes(const char *text, size_t *sizes, int most)
{
    int count = 0;
    for (const char *at = text; *at && count < most; count++) {
        char *end;
        double size = strtod(at, &end);
        if (end == at || size < 0)
            return 0;
        if (*end == 'K' || *end == 'M') {
            size *= *end == 'K' ? 1024 : 1048576;
            end++;
        }
        if (*end && *end != ',')
            return 0;
        if (*end == ',' && !end[1])
            return 0;
        sizes[count] = (size_t)size;
        at = *end ? end + 1 : end;
        if (!*at)
            return count + 1;
    }
    return 0;
}

/* Reads a whole number from `least` to `most`; returns whether the text is one. */
static inline int read_count(const char *text, int least, int most, int *count)
{
    char *end;
    long number = strtol(text, &end, 10);
    if (end == text || *end || number < least || number > most)
        return 0;
    *count = (int)number;
    return 1;
}

/* Returns which of the names it is, -1 when none. */
static inline int index_of_name(const char *name, const char *const *names, int count)
{
    for (int i = 0; i < count; i++)
        if (strcmp(name, names[i]) == 0)
            return i;
    return -1;
}

/* Reads the name of a form, or "all"; returns 0 when the text is neither. */
static inline int read_forms(const char *text, const char *const *names, int count, int *first, int *last)
{
    int form = index_of_name(text, names, count);
    *first = form < 0 ? 0 : form;
    *last = form < 0 ? count - 1 : form;
    return form >= 0 || strcmp(text, "all") == 0;
}

/* Sizes of messages that an int can count. */
static inline int sizes_fit(const size_t *sizes, int count)
{
    for (int i = 0; i < count; i++)
        if (sizes[i] < 1 || sizes[i] > 2147483647)
            return 0;
    return count > 0;
}

/* --- tables ------------------------------------------------------------------------------------------------------- */

static int column_widths[40], column; /* of the table that is being printed; the one that comes next */

static inline void print_cell(const char *text)
{
    printf("  %*s", column_widths[column++], text);
}

/* Names of columns, separated by single blanks; "X*" is X with its quartiles. */
static inline void print_columns(const char *names)
{
    enum { LEAST_WIDTH = 8 };
    char name[48], full[64];
    int count = 0;
    for (int length; sscanf(names, "%47s%n", name, &length) == 1; names += length) {
        char *star = strchr(name, '*');
        static const char *const ends[] = {"", "_lo", "_hi"};
        if (star)
            *star = 0;
        for (int i = 0; i < (star ? 3 : 1); i++) {
            int width = snprintf(full, sizeof full, "%s%s", name, ends[i]);
            column = count;
            column_widths[count++] = width > LEAST_WIDTH ? width : LEAST_WIDTH;
            print_cell(full);
        }
    }
    printf("\n");
    column = 0;
}

static inline void print_count(size_t count)
{
    char text[32];
    snprintf(text, sizeof text, "%zu", count);
    print_cell(text);
}

static inline void print_value(double value)
{
    char text[32];
    snprintf(text, sizeof text, "%.2f", value);
    print_cell(text);
}

static inline void print_spread(struct spread of)
{
    print_value(of.median);
    print_value(of.low);
    print_value(of.high);
}

static inline void print_nothing(void)
{
    print_cell("-");
}

static inline void end_row(void)
{
    printf("\n");
    column = 0;
}

#endif
