/* The LAPSCOPE_* variables, read once. options.def has them all. */
#ifndef LAPSCOPE_CONFIG_H
#define LAPSCOPE_CONFIG_H

#include <stdint.h>

#define CONFIG_TYPE_BOOL int
#define CONFIG_TYPE_COUNT int64_t
#define CONFIG_TYPE_CHOICE int /* place of the word in the unit column, from 0 */
#define CONFIG_TYPE_STRING const char *
#define CONFIG_TYPE_CLOCKS const char *

struct config {
#define OPTION(field, name, type, initial, unit, doc) CONFIG_TYPE_##type field;
#include "../../options.def"
#undef OPTION
};

extern struct config config;

/* Reads the environment. Bad values are named on standard error (when `speak`) and the default is used. */
void config_load(int speak);

/* For the record: option number `i` (from 0), its value in force and "default", "environment" or "rejected". Returns
 * its name, or NULL when there is no such number. */
const char *config_describe(unsigned i, const char **value, const char **source);

#endif
