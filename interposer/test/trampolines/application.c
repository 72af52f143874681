/* Makes one kind of call twice, the first through unresolved slots; says what is wrong and returns 1, or 0. */
#include "unknown_mpi.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static int integers(void)
{
    errno = 42;
    return MPI_Alltoallw(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11) == 506 + 1000 && errno == 42;
}

static int floats(void)
{
    return MPI_Scan(1, 2, 3, 4, 5, 6, 7, 8, 9, 3) == 285 + 3;
}

static int memory(void)
{
    struct wide in = {{1, 2, 3, 4}}, out = MPI_Exscan(in, 3);
    return out.values[0] == 3 && out.values[3] == 12;
}

static int variable(void)
{
    return MPI_Pcontrol(1, 2.5, 100) == 126;
}

/* The MPI has this call under one mangling alone, and not under the first that is looked for. */
static int mangled(void)
{
    int value = 5;
    mpi_barrier__(&value);
    return value == 6;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*check)(void);
    } checks[] = {{"integers", integers}, {"floats", floats}, {"memory", memory}, {"variable", variable}, {"mangled", mangled}};
    for (unsigned i = 0; i < sizeof checks / sizeof checks[0]; i++)
        if (argc == 2 && !strcmp(argv[1], checks[i].name))
            for (int call = 1; call <= 2; call++)
                if (!checks[i].check()) {
                    fprintf(stderr, "%s: call %d did not arrive as it was made\n", argv[1], call);
                    return 1;
                }
    return 0;
}
