#define _GNU_SOURCE
#include "gone.h"

#include "../base/clock.h"
#include "../base/process.h"

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
    if (header->pid_namespace && header->pid_namespace != process_namespace())
        return 0;
    return process_has_gone((long)header->pid, header->pid_start);
}

/* The same name with another boot is this host before it was booted, or another host of that name. */
static int was_before_boot(const struct spool_file_header *header)
{
    char host[sizeof header->host] = "";
    gethostname(host, sizeof host - 1);
    return *header->boot_id && strncmp(host, header->host, sizeof host) == 0 && header->epoch_unix_ns < boot_unix_ns();
}

/* -1: it is not. */
static int64_t seen_ns(const struct spool_file_header *header)
{
    char boot_id[sizeof header->boot_id];
    process_boot(boot_id, sizeof boot_id);
    int is_this_boot = *boot_id && strncmp(boot_id, header->boot_id, sizeof boot_id) == 0;
    if (is_this_boot && has_ended_here(header))
        return (int64_t)clock_nanoseconds(CLOCK_MONOTONIC) - header->first.monotonic_ns;
    if (!is_this_boot && was_before_boot(header))
        return (int64_t)clock_nanoseconds(CLOCK_REALTIME) - header->epoch_unix_ns;
    return -1;
}

int64_t gone_ns(const struct spool_definitions *definitions, const struct spool_file_header *header, uint32_t end, int64_t end_ns)
{
    int64_t gone = -1;
    if (end == SPOOL_OPEN)
        gone = seen_ns(header);
    else if (end != SPOOL_FINALIZED && header->latest_index)
        gone = spool_moment_ns(definitions, header->latest[header->latest_index & 1].ticks);
    return gone >= end_ns && gone <= SPOOL_LONGEST_NS ? gone : -1;
}
