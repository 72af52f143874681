/* The calls of calls.def as an enumeration, with what the table says of each. */
#ifndef LAPSCOPE_CALL_H
#define LAPSCOPE_CALL_H

enum call {
#define CALL(name, ...) CALL_##name,
#include "calls.inc"
#undef CALL
    CALL_COUNT
};

extern const char *const call_names[CALL_COUNT];

/* The columns of the table call_name behind the name, in their order; empty texts where there is nothing to say. */
struct call_facts {
    const char *family, *role, *kind, *transfers, *mode;
    int counted;
    const char *needs, *completes, *blocking;
};

extern const struct call_facts call_facts[CALL_COUNT];

#endif
