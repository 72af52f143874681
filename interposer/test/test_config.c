/* Options: what their values are taken for, and what is said of bad ones. */
#define _GNU_SOURCE
#include "check.h"

#include "../recorder/base/config.h"
#include "../recorder/base/log.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

/* What a variable's value is taken for, by its name: a number, the place of a word, 0 of text; -1 when it is no valid
 * value. */
static long long taken_for(const char *name, const char *value)
{
    setenv(name, value, 1);
    config_load(0);
    unsetenv(name);
    const char *known, *taken, *source;
    for (unsigned i = 0; (known = config_describe(i, &taken, &source)); i++)
        if (!strcmp(known, name) && !strcmp(source, "rejected"))
            return -1;
#define NUMBER_BOOL(field) config.field
#define NUMBER_CHOICE(field) config.field
#define NUMBER_COUNT(field) config.field
#define NUMBER_STRING(field) 0
#define NUMBER_TUPLES(field) 0
#define OPTION(field, option, type, ...) \
    if (!strcmp(name, option))           \
        return NUMBER_##type(field);
#include "options.inc"
    return -2;
}

static void test_values(const char *vectors)
{
    FILE *file = fopen(vectors, "r");
    CHECK(file != NULL);
    char line[256], name[64], value[64], expected[64];
    unsigned read = 0;
    while (file && fgets(line, sizeof line, file)) {
        if (*line == '#')
            continue;
        CHECK_EQUAL(sscanf(line, "%63s %63s %63s", name, value, expected), 3);
        long long found = taken_for(name, value), wanted = strcmp(expected, "-") ? atoll(expected) : -1;
        if (found != wanted)
            printf("%s=%s\n", name, value);
        CHECK_EQUAL(found, wanted);
        read++;
    }
    CHECK(read >= 70);
    if (file)
        fclose(file);
}

/* What `speak` writes on standard error. */
static const char *said(void (*speak)(const char *), const char *text)
{
    static char buffer[16384];
    int ends[2], before = dup(STDERR_FILENO);
    CHECK(before >= 0 && pipe(ends) == 0 && dup2(ends[1], STDERR_FILENO) == STDERR_FILENO);
    close(ends[1]);
    speak(text);
    dup2(before, STDERR_FILENO);
    close(before);
    ssize_t bytes = read(ends[0], buffer, sizeof buffer - 1);
    close(ends[0]);
    buffer[bytes > 0 ? bytes : 0] = '\0';
    return buffer;
}

static void speak_plainly(const char *text)
{
    log_line("%s", text);
}

static void load_with(const char *value)
{
    setenv("LAPSCOPE_MAX_MB", value, 1);
    config_load(1);
    unsetenv("LAPSCOPE_MAX_MB");
}

static void test_what_is_said_is_text(void)
{
    CHECK_TEXT(said(load_with, "\x1b]0;t\x07\nlapscope: x"),
               "lapscope: LAPSCOPE_MAX_MB=\\x1b]0;t\\x07\\x0alapscope: x is not valid (1..1048576 MB): using 50\n");
    CHECK_TEXT(said(speak_plainly, "\x7f \xc2\x9b \xe2\x80\xae \xe2\x81\xa6 \xe2\x80\xa8 \xef\xbb\xbf"),
               "lapscope: \\x7f \\xc2\\x9b \\xe2\\x80\\xae \\xe2\\x81\\xa6 \\xe2\\x80\\xa8 \\xef\\xbb\\xbf\n");
    CHECK_TEXT(said(speak_plainly, "J\xc3\xbcrgen \xe5\xae\xbd \xf0\x9f\x98\x80"),
               "lapscope: J\xc3\xbcrgen \xe5\xae\xbd \xf0\x9f\x98\x80\n");
    /* Latin-1, an overlong form, a surrogate, and an end in the middle */
    CHECK_TEXT(said(speak_plainly, "\x9b \xc0\x9b \xed\xa0\x80 \xe2\x80"),
               "lapscope: \\x9b \\xc0\\x9b \\xed\\xa0\\x80 \\xe2\\x80\n");
}

static void test_long_messages_are_cut(void)
{
    static char text[8192];
    memset(text, '\x1b', sizeof text - 1);
    const char *line = said(speak_plainly, text);
    size_t length = strlen(line);
    CHECK(length > 4000 && length <= 4096 + 256 && line[length - 1] == '\n' && !strchr(line, '\x1b'));
}

int main(int argc, char **argv)
{
    test_values(argc > 1 ? argv[1] : "values.txt");
    test_what_is_said_is_text();
    test_long_messages_are_cut();
    return check_summary();
}
