#define _GNU_SOURCE
#include "gone.h"

#include "../base/clock.h"
#include "../base/process.h"
#include "../spool/definitions.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* When this host was booted, since 1970: proc(5), btime of /proc/stat. 0: not known. */
static int64_t boot_unix_ns(void)
{
    char line[256];
    long long seconds = 0;
    FILE *file = fopen("/proc/stat", "re");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "btime %lld", &seconds) == 1)
            break;
    if (file)
        fclose(file);
    return (int64_t)seconds * 1000000000;
}

static int has_ended_here(const struct spool_file_header *header)
{
    char pid[24];
    if (header->pid_namespace && header->pid_namespace != process_namespace())
        return 0;
    snprintf(pid, sizeof pid, "%lld", (long long)header->pid);
    return process_start(pid) != header->pid_start;
}

/* The same name with another boot is this host before it was booted, or another host of that name. */
static int was_before_boot(const struct spool_file_header *header)
{
    char host[sizeof header->host] = "";
    gethostname(host, sizeof host - 1);
    return *header->boot_id && strncmp(host, header->host, sizeof host) == 0 && header->epoch_unix_ns < boot_unix_ns();
}

int64_t gone_ns(const struct spool_file_header *header, int64_t end_ns)
{
    char boot_id[sizeof header->boot_id];
    int64_t since = -1;
    process_boot(boot_id, sizeof boot_id);
    int is_this_boot = *boot_id && strncmp(boot_id, header->boot_id, sizeof boot_id) == 0;
    if (is_this_boot && has_ended_here(header))
        since = (int64_t)clock_nanoseconds(CLOCK_MONOTONIC) - header->first.monotonic_ns;
    else if (!is_this_boot && was_before_boot(header))
        since = (int64_t)clock_nanoseconds(CLOCK_REALTIME) - header->epoch_unix_ns;
    return since >= end_ns && since <= SPOOL_LONGEST_NS ? since : -1;
}
