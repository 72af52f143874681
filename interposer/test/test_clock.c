/* The clock that a test can shift: what is accepted, and what is recorded. */
#include "check.h"

#include "../recorder/base/clock.h"
#include "../recorder/base/config.h"

#include <stdlib.h>

static struct clock_shift shift;

static void test_text(void)
{
    CHECK_EQUAL(clock_shift_of("", 0, &shift), 1);
    CHECK(shift.ahead_us == 0 && shift.faster_ppm == 0);
    CHECK_EQUAL(clock_shift_of("1:2500:-40,3:-7:12", 3, &shift), 1);
    CHECK(shift.ahead_us == -7 && shift.faster_ppm == 12);
    CHECK_EQUAL(clock_shift_of("1:2500:-40,3:-7:12", 1, &shift), 1);
    CHECK(shift.ahead_us == 2500 && shift.faster_ppm == -40);
    CHECK_EQUAL(clock_shift_of("1:2500:-40,3:-7:12", 2, &shift), 1);
    CHECK(shift.ahead_us == 0 && shift.faster_ppm == 0);
    static const char *const wrong[] = {"1",     "1:2",   "1:2:",    "1:2:3:4",      "a:2:3", "-1:2:3",          "1;2;3",
                                        "1:2:x", "1:2.5:3", "1:2:3 ", "1:2:100001", ",",     "1:1000000000001:0", "1:2:3,4",
                                        "1:2:3,", " 1:2:3"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        CHECK_EQUAL(clock_shift_of(wrong[i], 1, &shift), 0);
}

static void test_sources(void)
{
    CHECK(clock_lists_tsc("tsc kvm-clock \n") && clock_lists_tsc("kvm-clock tsc\n") && clock_lists_tsc("tsc"));
    CHECK(!clock_lists_tsc("kvm-clock hpet acpi_pm \n") && !clock_lists_tsc("tsc-early hyperv_clocksource_tsc_page\n"));
}

static void test_option(void)
{
    const char *value, *source, *name;
    setenv("LAPSCOPE_TEST_CLOCK", "1:ahead", 1);
    config_load(0);
    CHECK_TEXT(config.test_clock, "");
    for (unsigned i = 0; (name = config_describe(i, &value, &source)); i++)
        if (!strcmp(name, "LAPSCOPE_TEST_CLOCK"))
            CHECK_TEXT(source, "rejected");
    setenv("LAPSCOPE_TEST_CLOCK", "1:5:6", 1);
    config_load(0);
    CHECK_TEXT(config.test_clock, "1:5:6");
}

/* Ticks of CLOCK_MONOTONIC are its nanoseconds, so that a pair tells what was added. */
static void test_pairs(void)
{
    clock_select(CONFIG_CLOCK_MONOTONIC);
    struct spool_clock_pair start = clock_pair();
    CHECK_EQUAL((int64_t)start.ticks, start.monotonic_ns);
    struct spool_clock_pair began = clock_pretend((struct clock_shift){-3000, 50000}, start);
    CHECK_EQUAL(began.ticks, start.ticks);
    CHECK_EQUAL(began.monotonic_ns, start.monotonic_ns - 3000000);
    struct spool_clock_pair later = clock_pair();
    int64_t passed = (int64_t)(later.ticks - start.ticks);
    CHECK(passed > 0);
    CHECK_EQUAL(later.monotonic_ns, (int64_t)later.ticks - 3000000 + passed / 20);
    clock_pretend((struct clock_shift){0, 0}, start);
    later = clock_pair();
    CHECK_EQUAL((int64_t)later.ticks, later.monotonic_ns);
}

int main(void)
{
    test_text();
    test_sources();
    test_option();
    test_pairs();
    return check_summary();
}
