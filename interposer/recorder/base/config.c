#include "config.h"

#include "clock.h"
#include "log.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct config config __attribute__((visibility("hidden")));

enum option_type { BOOL, COUNT, CHOICE, STRING, CLOCKS };

struct option {
    const char *name;
    enum option_type type;
    const char *initial, *unit;
    size_t offset;
    const char *value, *source;
};

static struct option options[] = {
#define OPTION(field, name, type, initial, unit, doc) {name, type, initial, unit, offsetof(struct config, field), initial, "default"},
#include "../../options.def"
#undef OPTION
};

enum { OPTION_COUNT = sizeof options / sizeof options[0] };

static int find_word(const char *words, const char *value)
{
    int place = 0;
    for (const char *word = words; *word; place++) {
        size_t length = strcspn(word, "|");
        if (strlen(value) == length && !strncasecmp(word, value, length))
            return place;
        word += length + (word[length] == '|');
    }
    return -1;
}

static int parse_bool(const char *value, int *parsed)
{
    if (find_word("on|1|yes|true", value) >= 0)
        *parsed = 1;
    else if (find_word("off|0|no|false", value) >= 0)
        *parsed = 0;
    else
        return 0;
    return 1;
}

/* What may stand behind a number, of two kinds: sizes in bytes, and times in microseconds. crates/data/src/options.rs has the same,
 * and interposer/test/units.txt says what both make of it. */
static const struct suffix {
    const char *name;
    int is_time;
    int64_t size;
} suffixes[] = {
    {"b", 0, 1},          {"bytes", 0, 1},       {"k", 0, 1 << 10},        {"kb", 0, 1 << 10},     {"kib", 0, 1 << 10},
    {"m", 0, 1 << 20},    {"mb", 0, 1 << 20},    {"mib", 0, 1 << 20},      {"g", 0, 1 << 30},      {"gb", 0, 1 << 30},
    {"gib", 0, 1 << 30},  {"t", 0, 1LL << 40},   {"tb", 0, 1LL << 40},     {"tib", 0, 1LL << 40},  {"us", 1, 1},
    {"ms", 1, 1000},      {"s", 1, 1000000},     {"min", 1, 60000000},     {"h", 1, 3600000000LL},
};

static const struct suffix *find_suffix(const char *name)
{
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++)
        if (!strcasecmp(suffixes[i].name, name))
            return &suffixes[i];
    return NULL;
}

/* `number`, which has `suffix`, in units of `own`; 0 when that is no whole number of them. */
static int convert(long long *number, const char *suffix, const char *own)
{
    const struct suffix *from = find_suffix(suffix), *to = find_suffix(own);
    if (!from || !to || from->is_time != to->is_time || __builtin_mul_overflow(*number, from->size, number) ||
        *number % to->size)
        return 0;
    *number /= to->size;
    return 1;
}

/* `unit` starts with the range, "1..128 frames"; "64k" and "1ms" are fine where it is one of sizes or times. */
static int parse_count(const char *value, const char *unit, int64_t *parsed)
{
    long long low = 0, high = INT64_MAX;
    char own[16] = "";
    sscanf(unit, "%lld..%lld %15s", &low, &high, own);
    char *end;
    errno = 0;
    long long number = strtoll(value, &end, 10);
    if (errno || end == value || (*end && !convert(&number, end, own)) || number < low || number > high)
        return 0;
    *parsed = number;
    return 1;
}

static int assign(const struct option *option, const char *value)
{
    void *field = (char *)&config + option->offset;
    switch (option->type) {
    case BOOL:
        return parse_bool(value, field);
    case COUNT:
        return parse_count(value, option->unit, field);
    case CHOICE: {
        int place = find_word(option->unit, value);
        if (place >= 0)
            *(int *)field = place;
        return place >= 0;
    }
    case CLOCKS:
        if (!clock_shift_of(value, 0, &(struct clock_shift){0, 0}))
            return 0;
        break;
    case STRING:
        break;
    }
    *(const char **)field = value;
    return 1;
}

void config_load(int speak)
{
    for (unsigned i = 0; i < OPTION_COUNT; i++) {
        struct option *option = &options[i];
        const char *value = getenv(option->name);
        assign(option, option->initial);
        if (!value || !*value)
            continue;
        if (assign(option, value)) {
            option->value = value;
            option->source = "environment";
        } else {
            option->source = "rejected";
            if (speak)
                log_line("%s=%s is not valid (%s): using %s", option->name, value, option->unit, option->initial);
        }
    }
}

const char *config_describe(unsigned i, const char **value, const char **source)
{
    if (i >= OPTION_COUNT)
        return NULL;
    *value = options[i].value;
    *source = options[i].source;
    return options[i].name;
}
