#include "call.h"

#pragma GCC visibility push(hidden)

#define CALL(name, family, role) #name,
const char *const call_names[CALL_COUNT] = {
#include "calls.inc"
};
#undef CALL

#define CALL(name, family, role) #family,
const char *const call_families[CALL_COUNT] = {
#include "calls.inc"
};
#undef CALL

#define CALL(name, family, role) #role,
const char *const call_roles[CALL_COUNT] = {
#include "calls.inc"
};
#undef CALL

#pragma GCC visibility pop
