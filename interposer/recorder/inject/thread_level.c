/* The level of threads that MPI is asked for, and that the application is told of. */
#include "injector.h"

#include "../base/config.h"
#include "auto.h"

#include <stdlib.h>

/* MPI_Init asks for what these say. */
static const struct {
    const char *name, *most;
} level_variables[] = {{"OMPI_MPI_THREAD_LEVEL", "3"}, {"MPIR_CVAR_DEFAULT_THREAD_LEVEL", "MPI_THREAD_MULTIPLE"}};

enum { LEVEL_VARIABLES = sizeof level_variables / sizeof level_variables[0] };

static int level_is_ours[LEVEL_VARIABLES]; /* we have set that variable */
static int asked = -1; /* what the application asked for, where we asked for more */

static int wants_threads(void)
{
    return config.inject == INJECT_THREAD;
}

int inject_before_start(int level)
{
    if (inject_uses_timer())
        inject_timer_before_start();
    auto_asked_for(level);
    if (!wants_threads() || level == MPI_THREAD_MULTIPLE)
        return level;
    asked = level;
    return MPI_THREAD_MULTIPLE;
}

void inject_before_plain_start(void)
{
    inject_before_start(MPI_THREAD_MULTIPLE); /* for which there is nothing more to ask for */
    auto_asked_for(MPI_THREAD_SINGLE);
    for (int i = 0; wants_threads() && i < LEVEL_VARIABLES; i++) {
        if (getenv(level_variables[i].name)) /* the user asks for something: it stays, and if it is too little we say so */
            continue;
        asked = MPI_THREAD_SINGLE;
        setenv(level_variables[i].name, level_variables[i].most, 1);
        level_is_ours[i] = 1;
    }
}

void inject_behind_start(void)
{
    if (inject_uses_timer())
        inject_timer_behind_start();
    for (int i = 0; i < LEVEL_VARIABLES; i++)
        if (level_is_ours[i])
            unsetenv(level_variables[i].name);
}

int inject_tells(int level)
{
    return asked >= 0 && level == MPI_THREAD_MULTIPLE ? asked : level;
}
