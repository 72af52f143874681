/* Assertions that count. A test program runs its functions and ends with `return check_summary();`. */
#ifndef LAPSCOPE_TEST_CHECK_H
#define LAPSCOPE_TEST_CHECK_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>

static unsigned check_passed, check_failed;

static inline void check_that(int holds, const char *file, int line, const char *what)
{
    if (holds) {
        check_passed++;
        return;
    }
    check_failed++;
    printf("%s:%d: %s\n", file, line, what);
}

static inline void check_equal(uint64_t got, uint64_t expected, const char *file, int line, const char *what)
{
    check_that(got == expected, file, line, what);
    if (got != expected)
        printf("  got %lld (0x%llx), expected %lld (0x%llx)\n", (long long)got, (unsigned long long)got, (long long)expected,
               (unsigned long long)expected);
}

static inline void check_text(const char *got, const char *expected, const char *file, int line)
{
    int same = strcmp(got, expected) == 0;
    check_that(same, file, line, "texts differ");
    if (!same)
        printf("--- got\n%s\n--- expected\n%s\n", got, expected);
}

#define CHECK(condition) check_that(!!(condition), __FILE__, __LINE__, #condition)
#define CHECK_EQUAL(got, expected) check_equal((uint64_t)(got), (uint64_t)(expected), __FILE__, __LINE__, #got " == " #expected)
#define CHECK_TEXT(got, expected) check_text(got, expected, __FILE__, __LINE__)

static inline int check_summary(void)
{
    printf("%u passed, %u failed\n", check_passed, check_failed);
    return check_failed != 0;
}

#endif
