/* The modes in which tests are injected: what they are called, and what each needs. */
#include "injector.h"

#include "progress.h"

static const char *const mode_names[] = {
    [INJECT_OFF] = "off", [INJECT_CALLS] = "calls", [INJECT_TIMER] = "timer", [INJECT_THREAD] = "thread",
    [CONFIG_INJECT_AUTO] = "auto"};

const char *inject_mode_name(enum inject_mode mode)
{
    return mode_names[mode];
}

const char *inject_prepare_mode(struct injector *injector, enum inject_mode mode)
{
    const char *why = progress_prepare();
    if (!why && mode == INJECT_TIMER)
        why = inject_timer_prepare();
    if (!why && mode == INJECT_TIMER && !inject_timer_is_open(injector))
        why = inject_timer_open(injector);
    if (!why && mode == INJECT_THREAD)
        why = inject_helper_prepare();
    return why;
}
