#define _GNU_SOURCE
#include "process.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void read_line(const char *path, char *text, size_t bytes)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = fd >= 0 ? read(fd, text, bytes - 1) : 0;
    text[length > 0 ? length : 0] = '\0';
    text[strcspn(text, "\n")] = '\0';
    if (fd >= 0)
        close(fd);
}

/* Fields 3, 20 and 22 of /proc/PID/stat (proc(5)); the command name before them may hold blanks and brackets. */
static uint64_t read_stat(const char *pid, char *state, int *threads)
{
    char path[64], text[1024];
    unsigned long long start = 0;
    *state = 'X';
    *threads = 0;
    snprintf(path, sizeof path, "/proc/%s/stat", pid);
    read_line(path, text, sizeof text);
    const char *field = strrchr(text, ')');
    for (int i = 2; field && i < 22; i++) {
        field = strchr(field + 1, ' ');
        if (field && i + 1 == 3)
            *state = field[1];
        if (field && i + 1 == 20)
            sscanf(field, "%d", threads);
    }
    if (field)
        sscanf(field, "%llu", &start);
    return start;
}

/* A zombie writes no more, unless further threads of it live on. */
static int is_dead(char state, int threads)
{
    return (state == 'Z' || state == 'X') && threads <= 1;
}

uint64_t process_start(const char *pid)
{
    char state;
    int threads;
    uint64_t start = read_stat(pid, &state, &threads);
    return is_dead(state, threads) ? 0 : start;
}

/* Where its file cannot be read (no descriptor is free, or /proc hides it), what there is of that pid is taken for it. */
int process_has_gone(long pid, uint64_t start)
{
    char text[24], state;
    int threads;
    snprintf(text, sizeof text, "%ld", pid);
    uint64_t now = read_stat(text, &state, &threads);
    if (!now || !start)
        return kill((pid_t)pid, 0) != 0 && errno == ESRCH;
    return now != start || is_dead(state, threads);
}

int process_has_only_helpers(int helpers)
{
    char state;
    int threads;
    return read_stat("self", &state, &threads) && state == 'Z' && threads <= helpers + 1; /* the zombie counts */
}

uint64_t process_namespace(void)
{
    struct stat facts;
    return stat("/proc/self/ns/pid", &facts) == 0 ? (uint64_t)facts.st_ino : 0;
}

void process_boot(char *boot_id, size_t bytes)
{
    read_line("/proc/sys/kernel/random/boot_id", boot_id, bytes);
}

static const char *began_in = "";

void process_began_in(const char *directory)
{
    began_in = directory;
}

int process_directory(char *path, size_t bytes)
{
    if (!*began_in)
        return getcwd(path, bytes) != NULL;
    if (strlen(began_in) < bytes)
        return strcpy(path, began_in) != NULL;
    errno = ENAMETOOLONG;
    return 0;
}

void *process_symbol(const char *name)
{
    void *everybody = dlopen(NULL, RTLD_LAZY);
    void *symbol = everybody ? dlsym(everybody, name) : NULL;
    if (everybody)
        dlclose(everybody);
    return symbol;
}
