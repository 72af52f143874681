#include "inject_policy.h"

#include "arena.h"
#include "log.h"
#include "modules.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { CALL_BYTES = 64, MODULE_BYTES = 256, LINE_BYTES = 1024 };

struct rule {
    struct rule *next;              /* the one before it in the file */
    char call[CALL_BYTES], module[MODULE_BYTES], build_id[MODULE_BUILD_ID_TEXT];
    uint64_t offset;
    int is_off;
};

static struct rule *rules;
static int is_off_by_default;

/* Returns 0 when the word is neither. */
static int parse_switch(const char *word, int *is_off)
{
    *is_off = !strcmp(word, "off");
    return *is_off || !strcmp(word, "on");
}

/* Returns 0 when a line is no rule. */
static int parse_line(char *line)
{
    char verb[8], word[8];
    unsigned long long offset;
    struct rule rule = {.next = rules};
    line[strcspn(line, "#\r\n")] = '\0';
    if (!line[strspn(line, " \t")])
        return 1;
    if (sscanf(line, " default %7s %7s", word, verb) == 1)
        return parse_switch(word, &is_off_by_default);
    char *plus = strrchr(line, '+'); /* names of modules may contain it too */
    if (!plus || strncmp(plus, "+0x", 3) != 0)
        return 0;
    *plus = ' ';
    if (sscanf(line, " %7s %63s %255s %llx %128s %7s", verb, rule.call, rule.module, &offset, rule.build_id, word) != 5 ||
        !parse_switch(verb, &rule.is_off))
        return 0;
    rule.offset = offset;
    struct rule *kept = arena_alloc(sizeof *kept);
    if (kept) {
        *kept = rule;
        rules = kept;
    }
    return kept != NULL;
}

const char *inject_policy_read(const char *path, int speak)
{
    char line[LINE_BYTES];
    if (!*path)
        return NULL;
    FILE *file = fopen(path, "re");
    if (!file) {
        if (speak)
            log_line("LAPSCOPE_INJECT_POLICY: %s cannot be read (%s)", path, strerror(errno));
        return "its policy file cannot be read";
    }
    for (int number = 1; fgets(line, sizeof line, file); number++)
        if (!parse_line(line) && speak)
            log_line("%s:%d: no rule (default on|off, or on|off CALL MODULE+0xOFFSET BUILD-ID): left out", path, number);
    fclose(file);
    return NULL;
}

int inject_policy_is_off(const char *call, uintptr_t return_address)
{
    static int said;
    struct module_place place;
    if (!rules || !module_of(return_address, &place))
        return is_off_by_default;
    for (const struct rule *rule = rules; rule; rule = rule->next) {
        if (rule->offset != place.offset || strcmp(rule->module, place.name) != 0 || strcmp(rule->call, call) != 0)
            continue;
        if (!strcmp(rule->build_id, *place.build_id ? place.build_id : "-"))
            return rule->is_off;
        log_once(&said, "LAPSCOPE_INJECT_POLICY speaks of another build of %s: rules for it do not count; `lapscope tune` makes "
                        "new ones", place.name);
    }
    return is_off_by_default;
}
