/*
 * Standard input and output while messages are pending: files written, flushed, read back and closed, numbers printed into
 * strings and scanned, a stream whose functions are the program's, lines on standard output.
 */
#include "traffic.h"

enum { LINES = 300, ROUNDS = 150, EVERY = 50 };

static void through_a_file(int round)
{
    FILE *file = tmpfile();
    CHECK(file);
    for (int i = 0; i < LINES; i++) {
        CHECK(fprintf(file, "%d %.17g %s\n", i, i / 3.0 + round, "word") > 0);
        if (i % 50 == 0)
            CHECK(fflush(file) == 0);
    }
    rewind(file);
    for (int i = 0; i < LINES; i++) {
        int number;
        double value;
        char word[8];
        CHECK(fscanf(file, "%d %lf %7s", &number, &value, word) == 3);
        CHECK(number == i && value == i / 3.0 + round && strcmp(word, "word") == 0);
    }
    CHECK(fclose(file) == 0);
}

static void through_strings(int round)
{
    for (int i = 0; i < LINES; i++) {
        char text[64], again[64];
        double value;
        snprintf(text, sizeof text, "%.17g", (round + 1) / (i + 1.0));
        CHECK(sscanf(text, "%lf", &value) == 1);
        snprintf(again, sizeof again, "%.17g", value);
        CHECK(strcmp(text, again) == 0);
    }
}

/* Called by the library with the lock of the stream held. */
static ssize_t take(void *sum, const char *text, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        *(long *)sum += text[i] + (arithmetic(100) > 2.0);
    return (ssize_t)bytes;
}

static void through_a_stream_of_ours(void)
{
    long sum = 0;
    FILE *stream = fopencookie(&sum, "w", (cookie_io_functions_t){.write = take});
    CHECK(stream);
    for (int i = 0; i < LINES; i++)
        fputs("abc", stream);
    CHECK(fclose(stream) == 0);
    CHECK(sum == (long)LINES * ('a' + 'b' + 'c'));
}

static void work(int round)
{
    through_a_file(round);
    through_strings(round);
    through_a_stream_of_ours();
    if (traffic.rank == 0 && round % EVERY == 0)
        printf("round %d\n", round);
    fflush(NULL);
}

int main(int argc, char **argv)
{
    int rank = start(&argc, &argv, 2);
    under_traffic(argc, argv, ROUNDS, work);
    if (rank == 0)
        puts("what was written was read");
    MPI_Finalize();
    return 0;
}
