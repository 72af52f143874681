/* The calls of calls.def as an enumeration, with what the table says of each. */
#ifndef LAPSCOPE_CALL_H
#define LAPSCOPE_CALL_H

enum call {
#define CALL(name, family, role) CALL_##name,
#include "calls.inc"
#undef CALL
    CALL_COUNT
};

extern const char *const call_names[CALL_COUNT];
extern const char *const call_families[CALL_COUNT];
extern const char *const call_roles[CALL_COUNT];

#endif
