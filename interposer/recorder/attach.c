/* Where the preload library hands over: puts the wrappers into its slots. */
#include "callsite.h"
#include "config.h"
#include "log.h"
#include "wrappers.h"

#define CALL(name, family, role) (void *)wrap_##name,
#if MPI_VERSION < 4
#define CALL_LARGE(name, family, role) NULL,
#endif
static void *const wrappers[CALL_COUNT] = {
#include "../calls.def"
};
#undef CALL

__attribute__((visibility("default"))) int lapscope_attach(const struct lapscope_host *host)
{
    if (host->version != LAPSCOPE_HOST_VERSION || host->calls != CALL_COUNT)
        return -1;
    int speak = log_first_on_node();
    config_load(speak);
    const char *missing = mpi_api_load(host);
    if (missing) {
        log_line("%s has no %s, which the recorder needs: nothing is recorded", host->mpi_path, missing);
        return 0;
    }
    if (!clock_select((enum clock_choice)config.clock) && speak)
        log_line("LAPSCOPE_CLOCK=tsc: this processor's time-stamp counter is not invariant: using CLOCK_MONOTONIC");
    callsite_configure();
    for (unsigned i = 0; i < CALL_COUNT; i++)
        if (host->real[i] && wrappers[i])
            host->slots[i] = wrappers[i];
    return 0;
}
