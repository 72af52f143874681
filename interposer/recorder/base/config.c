#include "config.h"

#include "log.h"

#include <ctype.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct config config __attribute__((visibility("hidden")));

enum option_type { BOOL, COUNT, CHOICE, STRING, TUPLES };

struct range {
    int64_t low, high; /* equal: there is none */
};

struct option {
    const char *name;
    enum option_type type;
    const char *initial, *expected, *unit;
    struct range ranges[CONFIG_TUPLE];
    size_t offset;
    const char *value, *source;
};

static struct option options[] = {
#define OPTION(field, name, type, initial, expected, unit, ...) \
    {name, type, initial, expected, unit, {__VA_ARGS__}, offsetof(struct config, field), initial, "default"},
#include "options.inc"
};

enum { OPTION_COUNT = sizeof options / sizeof options[0] };

/* --- the rules of options.def; crates/data/src/options.rs follows them too, and test/values.txt tests both */

static int parse_bool(const char *value, int *parsed)
{
    static const struct {
        const char *word;
        int value;
    } truths[] = {
#define TRUTH(word, value) {word, value},
#include "options.inc"
    };
    for (size_t i = 0; i < sizeof truths / sizeof truths[0]; i++)
        if (!strcasecmp(truths[i].word, value)) {
            *parsed = truths[i].value;
            return 1;
        }
    return 0;
}

static int parse_choice(const char *value, const char *words, int *parsed)
{
    int place = 0;
    for (const char *word = words; *word; place++) {
        size_t length = strcspn(word, "|");
        if (strlen(value) == length && !strncasecmp(word, value, length)) {
            *parsed = place;
            return 1;
        }
        word += length + (word[length] == '|');
    }
    return 0;
}

static const struct unit {
    const char *name;
    int kind;
    int64_t size;
} units[] = {
#define UNIT(name, kind, size) {name, kind, size},
#include "options.inc"
};

static const struct unit *find_unit(const char *name)
{
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (!strcasecmp(units[i].name, name))
            return &units[i];
    return NULL;
}

/* `number` of unit `theirs` in units of `own`; 0 when that is no whole number of them. */
static int convert(long long *number, const char *theirs, const char *own)
{
    const struct unit *from = find_unit(theirs), *to = find_unit(own);
    if (!from || !to || from->kind != to->kind || __builtin_mul_overflow(*number, from->size, number) || *number % to->size)
        return 0;
    *number /= to->size;
    return 1;
}

static int is_within(int64_t number, const struct range *range)
{
    return number >= range->low && number <= range->high;
}

static int parse_count(const char *value, const struct option *option, int64_t *parsed)
{
    char *end;
    errno = 0;
    long long number = strtoll(value, &end, 10);
    if (errno || end == value || (*end && !convert(&number, end, option->unit)) || !is_within(number, &option->ranges[0]))
        return 0;
    *parsed = number;
    return 1;
}

static int next_tuple(const struct option *option, const char **text, int64_t numbers[CONFIG_TUPLE])
{
    const struct range *range = option->ranges;
    for (int i = 0; i < CONFIG_TUPLE && range[i].low < range[i].high; i++) {
        int is_last = i + 1 == CONFIG_TUPLE || range[i + 1].low == range[i + 1].high;
        char *stop;
        errno = 0;
        numbers[i] = strtoll(*text, &stop, 10);
        if (isspace((unsigned char)**text) || errno || stop == *text || !is_within(numbers[i], &range[i]))
            return 0;
        if (is_last && !*stop) {
            *text = stop;
            return 1;
        }
        if (*stop != (is_last ? ',' : ':') || !stop[1])
            return 0;
        *text = stop + 1;
    }
    return 1;
}

int config_next_tuple(const char *option, const char **text, int64_t numbers[CONFIG_TUPLE])
{
    for (unsigned i = 0; i < OPTION_COUNT; i++)
        if (!strcmp(options[i].name, option))
            return next_tuple(&options[i], text, numbers);
    return 0;
}

static int are_tuples(const struct option *option, const char *text)
{
    int64_t numbers[CONFIG_TUPLE];
    while (*text)
        if (!next_tuple(option, &text, numbers))
            return 0;
    return 1;
}

static int assign(const struct option *option, const char *value)
{
    void *field = (char *)&config + option->offset;
    switch (option->type) {
    case BOOL:
        return parse_bool(value, field);
    case COUNT:
        return parse_count(value, option, field);
    case CHOICE:
        return parse_choice(value, option->expected, field);
    case TUPLES:
        if (!are_tuples(option, value))
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
                log_line("%s=%s is not valid (%s): using %s", option->name, value, option->expected, option->initial);
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
