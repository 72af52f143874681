#define _GNU_SOURCE
#include "bring_up.h"

#include "../recorder/record/callsite.h"
#include "../recorder/base/config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char directory[64], path[96];

struct thread *bring_up(void)
{
    if (!*path) {
        strcpy(directory, "/tmp/lapscope-test-XXXXXX");
        struct spool_identity identity = {.world_size = 1, .life = 1};
        config_load(1);
        clock_select(CONFIG_CLOCK_AUTO);
        callsite_configure();
        identity.first = clock_pair();
        if (!mkdtemp(directory) || snprintf(path, sizeof path, "%s/rank-0.spool", directory) < 0 ||
            spool_create(path, (uint64_t)1 << 30, &identity) != 0) {
            fprintf(stderr, "no spool in %s\n", directory);
            exit(2);
        }
        recorder_state = RECORDER_ON;
    }
    struct thread *t = current_thread ? current_thread : thread_first_call();
    if (!t) {
        fprintf(stderr, "no record for this thread in %s\n", path);
        exit(2);
    }
    return t;
}

const char *bring_up_path(void)
{
    return path;
}

void tear_down(void)
{
    unlink(path);
    rmdir(directory);
}
