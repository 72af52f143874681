/* The LAPSCOPE_* variables, read once. options.def has them all, and says which values they may have. */
#ifndef LAPSCOPE_CONFIG_H
#define LAPSCOPE_CONFIG_H

#include <stdint.h>

#define CONFIG_TYPE_BOOL int
#define CONFIG_TYPE_COUNT int64_t
#define CONFIG_TYPE_CHOICE int /* enum config_choice */
#define CONFIG_TYPE_STRING const char *
#define CONFIG_TYPE_TUPLES const char *

struct config {
#define OPTION(field, name, type, ...) CONFIG_TYPE_##type field;
#include "options.inc"
};

/* The words of choices, by option and word: CONFIG_INJECT_TIMER. */
enum config_choice {
#define CHOICE(constant, place) CONFIG_##constant = place,
#include "options.inc"
};

extern struct config config;

/* Reads the environment. Bad values are named on standard error (when `speak`) and the default is used. */
void config_load(int speak);

enum { CONFIG_TUPLE = 3 }; /* numbers in a tuple, at the most */

/* The first of the tuples in a value of that option; `text` is then behind it, and at its end behind the last. Returns
 * 0 when it is none. */
int config_next_tuple(const char *option, const char **text, int64_t numbers[CONFIG_TUPLE]);

/* For the record: option number `i` (from 0), its value in force and "default", "environment" or "rejected". Returns
 * its name, or NULL when there is no such number. */
const char *config_describe(unsigned i, const char **value, const char **source);

#endif
