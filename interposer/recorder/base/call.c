#include "call.h"

#pragma GCC visibility push(hidden)

#define CALL(name, ...) #name,
const char *const call_names[CALL_COUNT] = {
#include "calls.inc"
};
#undef CALL

#define CALL(name, family, role, kind, transfers, mode, counted, needs, completes, blocking) \
    {#family, #role, #kind, #transfers, #mode, counted, #needs, #completes, #blocking},
const struct call_facts call_facts[CALL_COUNT] = {
#include "calls.inc"
};
#undef CALL

#pragma GCC visibility pop
