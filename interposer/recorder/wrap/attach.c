/* Where the preload library hands over: a wrapper for each function. */
#include "../base/config.h"
#include "../base/log.h"
#include "../base/mpi_api.h"
#include "../base/process.h"
#include "../inject/inject.h"
#include "../profile/sampler.h"
#include "../record/callsite.h"
#include "../record/device.h"
#include "recorder.h"
#include "substitutes.h"

#pragma GCC visibility push(hidden)
static void *const wrappers[FUNCTION_COUNT] = {
#define FUNCTION(function) (void *)wrap_##function,
#define SYMBOL(name, function)
#include "functions.inc"
#undef FUNCTION
#undef SYMBOL
};
#pragma GCC visibility pop

static void mask_changes(int how, const sigset_t *set)
{
    inject_mask_changes(how, set);
    sampler_mask_changes(how, set);
}

__attribute__((visibility("default"))) void *const *lapscope_attach(const struct lapscope_host *host)
{
    int speak = log_first_on_node();
    if (host->version != LAPSCOPE_HOST_VERSION || host->functions != FUNCTION_COUNT) {
        if (speak)
            log_line("liblapscope.so and its recorder are of different versions: nothing is recorded; install both anew");
        return NULL;
    }
    process_began_in(host->began_in);
    device_meet(host->devices);
    config_load(speak);
    const char *missing = mpi_api_load(host);
    if (missing) {
        if (speak)
            log_line("%s has no %s, which the recorder needs: nothing is recorded", host->mpi_path, missing);
        return NULL;
    }
    if (!clock_select((enum config_choice)config.clock) && speak)
        log_line("LAPSCOPE_CLOCK=tsc: this processor's time-stamp counter is not invariant: using CLOCK_MONOTONIC");
    callsite_configure();
    substitutes_install(host->substitutes);
    *host->exit_hook = recorder_left;
    *host->mask_hook = mask_changes;
    return wrappers;
}
