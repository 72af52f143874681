#include "policy.h"

#include "../base/arena.h"
#include "../base/log.h"
#include "../record/modules.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CALL_BYTES = 64, LINE_BYTES = 4096, MOST_ADDRESSES = 8, MOST_BYTES = 4 << 20 };

struct rule {
    struct rule *next;              /* the one before it in the file */
    char call[CALL_BYTES];
    int is_off;
    unsigned count;
    struct module_place addresses[]; /* of the call, then of its callers */
};

static struct rule *rules;
static int is_off_by_default;
static const char BLANKS[] = " \t";

/* Returns 0 when the word is neither. */
static int parse_switch(const char *word, int *is_off)
{
    *is_off = !strcmp(word, "off");
    return *is_off || !strcmp(word, "on");
}

/* Reads "MODULE+0xOFFSET BUILD-ID" from the words that strtok_r has left; returns 0 when that is not there. */
static int parse_address(char *word, char **rest, struct module_place *place)
{
    char *plus = strrchr(word, '+'), *end; /* names of modules may contain it too */
    char *build_id = strtok_r(NULL, BLANKS, rest);
    if (!plus || strncmp(plus, "+0x", 3) != 0 || !build_id || strlen(build_id) >= sizeof place->build_id ||
        (size_t)(plus - word) >= sizeof place->name)
        return 0;
    *place = (struct module_place){.offset = strtoull(plus + 1, &end, 16)};
    memcpy(place->name, word, (size_t)(plus - word));
    if (strcmp(build_id, "-") != 0)
        strcpy(place->build_id, build_id);
    return !*end;
}

/* Returns 0 when a line is no rule. */
static int parse_rule(char *call, int is_off, char **rest)
{
    struct module_place addresses[MOST_ADDRESSES];
    unsigned count = 0;
    if (!call || strlen(call) >= CALL_BYTES)
        return 0;
    for (char *word; (word = strtok_r(NULL, BLANKS, rest)); count++)
        if (count == MOST_ADDRESSES || !parse_address(word, rest, &addresses[count]))
            return 0;
    struct rule *rule = count ? arena_alloc(sizeof *rule + count * sizeof addresses[0]) : NULL;
    if (!rule)
        return 0;
    *rule = (struct rule){.next = rules, .is_off = is_off, .count = count};
    strcpy(rule->call, call);
    memcpy(rule->addresses, addresses, count * sizeof addresses[0]);
    rules = rule;
    return 1;
}

/* Returns 0 when a line is no rule. */
static int parse_line(char *line)
{
    char *rest, *verb;
    int is_off;
    line[strcspn(line, "#\r\n")] = '\0';
    verb = strtok_r(line, BLANKS, &rest);
    if (!verb)
        return 1;
    if (parse_switch(verb, &is_off))
        return parse_rule(strtok_r(NULL, BLANKS, &rest), is_off, &rest);
    char *word = strtok_r(NULL, BLANKS, &rest);
    return !strcmp(verb, "default") && word && parse_switch(word, &is_off_by_default) && !strtok_r(NULL, BLANKS, &rest);
}

/* What a name is of is known when it is open: neither a FIFO without a writer nor a device without an end is waited for. */
static FILE *open_policy(const char *path, const char **why)
{
    struct stat facts;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    *why = fd < 0 || fstat(fd, &facts) != 0 ? strerror(errno) : !S_ISREG(facts.st_mode) ? "it is not a regular file" : NULL;
    if (!*why && facts.st_size > MOST_BYTES)
        *why = "it has more than 4 MiB, and so is no policy";
    FILE *file = *why ? NULL : fdopen(fd, "r");
    if (!file && fd >= 0)
        close(fd);
    return file;
}

const char *inject_policy_read(const char *path, int speak)
{
    char line[LINE_BYTES];
    const char *why;
    if (!*path)
        return NULL;
    FILE *file = open_policy(path, &why);
    if (!file) {
        if (speak)
            log_line("LAPSCOPE_INJECT_POLICY: %s cannot be read (%s)", path, why ? why : "no memory");
        return "its policy file cannot be read";
    }
    for (int number = 1; fgets(line, sizeof line, file); number++)
        if (!parse_line(line) && speak)
            log_line("%s:%d: no rule (default on|off, or on|off CALL MODULE+0xOFFSET BUILD-ID ...): left out", path, number);
    fclose(file);
    return NULL;
}

/* Where the first addresses of a call path are, looked up when a rule asks for them. */
struct places {
    const uintptr_t *addresses;
    unsigned count, known;
    struct module_place place[MOST_ADDRESSES];
};

/* NULL where the path has no such address, or it is in no module. */
static const struct module_place *place_at(struct places *places, unsigned at)
{
    for (; places->known <= at; places->known++)
        if (places->known == places->count || !module_of(places->addresses[places->known], &places->place[places->known]))
            return NULL;
    return &places->place[at];
}

static int is_there(const struct rule *rule, struct places *places)
{
    for (unsigned i = 0; i < rule->count; i++) {
        const struct module_place *place = place_at(places, i);
        if (!place || rule->addresses[i].offset != place->offset || strcmp(rule->addresses[i].name, place->name) != 0)
            return 0;
    }
    return 1;
}

/* The first module that is another build than the rule speaks of; NULL: there is none. */
static const char *another_build(const struct rule *rule, const struct places *places)
{
    for (unsigned i = 0; i < rule->count; i++)
        if (strcmp(rule->addresses[i].build_id, places->place[i].build_id) != 0)
            return places->place[i].name;
    return NULL;
}

int inject_policy_is_off(const char *call, const uintptr_t *addresses, unsigned count)
{
    static int said;
    struct places places = {addresses, count < MOST_ADDRESSES ? count : MOST_ADDRESSES, 0, {{{0}, {0}, 0}}};
    for (const struct rule *rule = rules; rule; rule = rule->next) {
        if (strcmp(rule->call, call) != 0 || !is_there(rule, &places))
            continue;
        const char *module = another_build(rule, &places);
        if (!module)
            return rule->is_off;
        log_once(&said, "LAPSCOPE_INJECT_POLICY speaks of another build of %s: rules for it do not count; `lapscope tune` makes "
                        "new ones", module);
    }
    return is_off_by_default;
}
