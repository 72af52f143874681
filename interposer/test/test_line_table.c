/* Tables of lines, by hand after CPython's own descriptions: Objects/lnotab_notes.txt (3.8 to 3.10), Objects/locations.md (3.11). */
#include "check.h"

#include "../recorder/python/line_table.h"

#include <stdlib.h>
#include <string.h>

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

int main(void)
{
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct case_of *it = &cases[i];
        struct python_place place = python_place_in(it->format, (const uint8_t *)it->table, it->bytes, 10, it->at);
        CHECK_EQUAL(place.line, it->line);
        CHECK_EQUAL(place.column, it->column);
    }
    unsigned seed = 1; /* what is damaged is read to its end, and not further: on the heap, where a sanitizer looks */
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
    return check_summary();
}
