/* Lines of Python, as far as that needs no interpreter: tests/tests/mpi4py.rs has those that are here. */
#include "check.h"

#include "../recorder/python/interpreter.h"
#include "../recorder/python/line_table.h"
#include "../recorder/python/python.h"

#include <stdlib.h>
#include <string.h>

/* --- tables of lines, by hand after CPython's descriptions: Objects/lnotab_notes.txt (to 3.10), Objects/locations.md (from 3.11) --- */

struct case_of {
    enum python_line_format format;
    const char *table;
    unsigned bytes;
    uint64_t at;
    uint32_t line, column; /* of code whose first line is 10 */
};

static const struct case_of cases[] = {
    /* 6 bytes of line 10, 50 of line 11, then line 9 */
    {LINES_LNOTAB, "\x06\x01\x32\xfe", 4, 0, 10, 0},
    {LINES_LNOTAB, "\x06\x01\x32\xfe", 4, 5, 10, 0},
    {LINES_LNOTAB, "\x06\x01\x32\xfe", 4, 6, 11, 0},
    {LINES_LNOTAB, "\x06\x01\x32\xfe", 4, 56, 9, 0},
    /* 4 bytes of line 10, 2 of no line, 8 of line 12 */
    {LINES_RANGES, "\x04\x00\x02\x80\x08\x02", 6, 3, 10, 0},
    {LINES_RANGES, "\x04\x00\x02\x80\x08\x02", 6, 4, 0, 0},
    {LINES_RANGES, "\x04\x00\x02\x80\x08\x02", 6, 6, 12, 0},
    {LINES_RANGES, "\x04\x00\x02\x80\x08\x02", 6, 14, 0, 0},
    /* two instructions, short: line 10, column 1 * 8 + 3 */
    {LINES_LOCATIONS, "\x89\x35", 2, 3, 10, 12},
    /* then one, one line further: columns 4 to 9 */
    {LINES_LOCATIONS, "\x89\x35\xd8\x04\x09", 5, 4, 11, 5},
    /* one without columns, 70 lines further: 140 = 12 + 2 * 64; then one of nothing */
    {LINES_LOCATIONS, "\xe8\x4c\x02\xf8", 4, 0, 80, 0},
    {LINES_LOCATIONS, "\xe8\x4c\x02\xf8", 4, 2, 0, 0},
    /* one of the long form: 3 lines back (7), 0 further to its end, columns 20 to 29 */
    {LINES_LOCATIONS, "\xf0\x07\x00\x15\x1e", 5, 0, 7, 21},
};

static void test_line_tables(void)
{
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct case_of *it = &cases[i];
        struct python_place place = python_place_in(it->format, (const uint8_t *)it->table, it->bytes, 10, it->at);
        CHECK_EQUAL(place.line, it->line);
        CHECK_EQUAL(place.column, it->column);
    }
}

/* What is damaged is read to its end, and not further: on the heap, where a sanitizer looks. */
static void test_damaged_tables(void)
{
    unsigned seed = 1;
    for (int round = 0; round < 20000; round++) {
        size_t bytes = (size_t)(round % 9);
        uint8_t *table = malloc(bytes ? bytes : 1);
        for (size_t i = 0; i < bytes; i++)
            table[i] = (uint8_t)((seed = seed * 1103515245 + 12345) >> 16);
        for (int format = LINES_LNOTAB; format <= LINES_LOCATIONS; format++) {
            struct python_place place = python_place_in((enum python_line_format)format, table, bytes, 10, (uint64_t)round % 50);
            CHECK(place.line < 1u << 28 && place.column < 1u << 12);
        }
        free(table);
    }
}

/* --- layouts ------------------------------------------------------------------------------------------------------ */

static void test_layouts(void)
{
    struct python_layout layout;
    uint64_t runtime[100] = {0};
    for (unsigned minor = 8; minor <= 12; minor++)
        CHECK(!python_layout_of(3u << 24 | minor << 16, NULL, &layout));
    CHECK_TEXT(python_layout_of(0x03070000, NULL, &layout), "CPython 3.8 to 3.14 are known");
    CHECK_TEXT(python_layout_of(0x03630000, NULL, &layout), "CPython 3.8 to 3.14 are known");
    CHECK_TEXT(python_layout_of(0x030d0000, NULL, &layout), "it does not say where its frames are");
    CHECK_TEXT(python_layout_of(0x030d0000, runtime, &layout), "it does not say where its frames are");
    memcpy(runtime, "xdebugpy", 8);
    runtime[1] = 0x030d01f0;
    CHECK(!python_layout_of(0x030d0000, runtime, &layout));
    CHECK_TEXT(python_layout_of(0x030e0000, runtime, &layout), "it does not say where its frames are"); /* of another version */
    runtime[23] = 1 << 20;
    CHECK_TEXT(python_layout_of(0x030d0000, runtime, &layout), "it says what cannot be of where its frames are");
    runtime[2] = 1;
    CHECK_TEXT(python_layout_of(0x030d0000, runtime, &layout), "those without a global lock are not known");
}

/* --- lines between native frames ---------------------------------------------------------------------------------- */

enum { INTERPRETER = 0x1000, EVAL = 0x1100, EVAL_END = 0x1200, INTERPRETER_END = 0x2000, FRAMES = 9 };
#define LINE(number) ((uintptr_t)1 << 63 | (number))

/* An extension (1) called MPI from lines 1 and 2, of one activation; line 3 is of another, which an extension (2) called, which
 * line 4 called, which the program's main (3) had run. */
static const struct python_native native[FRAMES] = {
    {0x10001, 0x100}, {INTERPRETER + 1, 0x110}, {EVAL + 5, 0x120}, {EVAL + 5, 0x140}, {0x10002, 0x160},
    {INTERPRETER + 2, 0x170}, {EVAL + 9, 0x180}, {INTERPRETER + 3, 0x1a0}, {0x10003, 0x1b0}};
static const uintptr_t mixed[] = {0x10001, LINE(1), LINE(2), LINE(3), 0x10002, LINE(4), 0x10003};
enum { MIXED = sizeof mixed / sizeof mixed[0] };

static void check_mix(const struct python_lines *lines, unsigned native_count, unsigned most, unsigned expected)
{
    uintptr_t to[FRAMES];
    CHECK_EQUAL(python_mix(lines, native, native_count, to, most), expected);
    for (unsigned i = 0; i < expected; i++)
        CHECK_EQUAL(to[i], mixed[i]);
}

static void test_mixing(void)
{
    python_interpreter.code.begin = INTERPRETER;
    python_interpreter.code.end = INTERPRETER_END;
    python_interpreter.code.eval_begin = EVAL;
    python_interpreter.code.eval_end = EVAL_END;
    struct python_lines by_place = {{{LINE(1), 0, 0}, {LINE(2), 1, 0x138}, {LINE(3), 1, 0x158}, {LINE(4), 1, 0x188}}, 4, 0};
    check_mix(&by_place, FRAMES, FRAMES, MIXED);
    struct python_lines by_function = by_place; /* of old versions nobody says where an activation is */
    for (unsigned i = 0; i < by_function.count; i++)
        by_function.line[i].stands_at = 0;
    check_mix(&by_function, FRAMES, FRAMES, MIXED);
    check_mix(&by_place, FRAMES, 3, 3);
    uintptr_t to[FRAMES]; /* the unwinder has come to the third frame: the lines are there all the same */
    CHECK_EQUAL(python_mix(&by_place, native, 3, to, FRAMES), 5);
    CHECK(to[0] == 0x10001 && to[1] == LINE(1) && to[4] == LINE(4));
}

int main(void)
{
    test_line_tables();
    test_damaged_tables();
    test_layouts();
    test_mixing();
    return check_summary();
}
