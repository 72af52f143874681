#define _GNU_SOURCE
#include "log.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Writes without dying of a closed standard error: SIGPIPE is for the application's own writes. */
static void write_quietly(const char *line, size_t bytes)
{
    sigset_t pipe_signal, before, pending;
    sigemptyset(&pipe_signal);
    sigaddset(&pipe_signal, SIGPIPE);
    sigpending(&pending);
    pthread_sigmask(SIG_BLOCK, &pipe_signal, &before);
    if (write(STDERR_FILENO, line, bytes) < 0 && errno == EPIPE && !sigismember(&pending, SIGPIPE))
        sigtimedwait(&pipe_signal, NULL, &(struct timespec){0, 0});
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* One write a line, so that ranks sharing a terminal do not cut each other's words. */
static void write_line(const char *format, va_list args)
{
    char line[4096 + 256];
    int saved_errno = errno;
    int used = snprintf(line, sizeof line, "lapscope: ");
    int said = vsnprintf(line + used, sizeof line - (size_t)used - 1, format, args);
    used += said < 0 ? 0 : said;
    if (used > (int)sizeof line - 2)
        used = (int)sizeof line - 2;
    line[used++] = '\n';
    write_quietly(line, (size_t)used);
    errno = saved_errno;
}

void log_line(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    write_line(format, args);
    va_end(args);
}

int log_once(int *said, const char *format, ...)
{
    if (__atomic_exchange_n(said, 1, __ATOMIC_RELAXED))
        return 0;
    va_list args;
    va_start(args, format);
    write_line(format, args);
    va_end(args);
    return 1;
}

int log_first_on_node(void)
{
    static const char *const local_ranks[] = {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"};
    for (size_t i = 0; i < sizeof local_ranks / sizeof local_ranks[0]; i++) {
        const char *value = getenv(local_ranks[i]);
        if (value && *value)
            return !strcmp(value, "0");
    }
    return 1;
}
