#include "line_table.h"

/* Pairs: bytes of code, lines (signed). Objects/lnotab_notes.txt of 3.9. */
static int64_t line_by_lnotab(const uint8_t *table, const uint8_t *end, int64_t line, uint64_t at)
{
    uint64_t address = 0;
    for (; end - table >= 2; table += 2) {
        address += table[0];
        if (address > at)
            break;
        line += (int8_t)table[1];
    }
    return line;
}

/* Pairs: bytes of code that are of one line, and how many lines that is behind the last; -128: of none. Of 3.10. */
static int64_t line_by_ranges(const uint8_t *table, const uint8_t *end, int64_t line, uint64_t at)
{
    enum { NO_LINE = -128 };
    uint64_t behind = 0;
    for (; end - table >= 2; table += 2) {
        int8_t lines = (int8_t)table[1];
        line += lines == NO_LINE ? 0 : lines;
        behind += table[0];
        if (behind > at)
            return lines == NO_LINE ? 0 : line;
    }
    return 0;
}

/* Six bits a byte, the lowest first; 0x40: there are more. */
static uint64_t read_number(const uint8_t **at, const uint8_t *end)
{
    uint64_t number = 0;
    for (unsigned shift = 0; *at < end && shift < 60; shift += 6) {
        uint8_t byte = *(*at)++;
        number |= (uint64_t)(byte & 0x3f) << shift;
        if (!(byte & 0x40))
            break;
    }
    return number;
}

static int64_t read_signed(const uint8_t **at, const uint8_t *end)
{
    uint64_t number = read_number(at, end);
    return number & 1 ? -(int64_t)(number >> 1) : (int64_t)(number >> 1);
}

static uint8_t read_byte(const uint8_t **at, const uint8_t *end)
{
    return *at < end ? *(*at)++ : 0;
}

/* Entries of one to eight instructions: Objects/locations.md of 3.11. */
static struct python_place place_by_locations(const uint8_t *table, const uint8_t *end, int64_t line, uint64_t at)
{
    enum { NO_COLUMNS = 13, LONG = 14, NOTHING = 15, FIRST_ONE_LINE = 10, INSTRUCTION = 2 };
    uint64_t behind = 0;
    while (table < end) {
        uint8_t first = *table++, form = first >> 3 & 15;
        uint64_t column = 0; /* from 1 */
        if (form == LONG || form == NO_COLUMNS)
            line += read_signed(&table, end);
        if (form == LONG) {
            read_number(&table, end); /* lines to its end */
            column = read_number(&table, end);
            read_number(&table, end); /* the last column */
        } else if (form >= FIRST_ONE_LINE && form < NO_COLUMNS) {
            line += form - FIRST_ONE_LINE;
            column = read_byte(&table, end) + UINT64_C(1);
            read_byte(&table, end);
        } else if (form < FIRST_ONE_LINE) {
            column = ((uint64_t)form << 3 | (read_byte(&table, end) >> 4 & 7)) + 1;
        }
        behind += ((first & 7) + UINT64_C(1)) * INSTRUCTION;
        if (behind > at)
            return form == NOTHING ? (struct python_place){0, 0} : (struct python_place){(uint32_t)line, (uint32_t)column};
    }
    return (struct python_place){0, 0};
}

struct python_place python_place_in(enum python_line_format format, const uint8_t *table, uint64_t bytes, uint32_t first_line,
                                    uint64_t at)
{
    enum { HIGHEST_LINE = (1 << 28) - 1, HIGHEST_COLUMN = (1 << 12) - 1 };
    const uint8_t *end = table + bytes;
    struct python_place place = {0, 0};
    if (format == LINES_LOCATIONS)
        place = place_by_locations(table, end, first_line, at);
    else
        place.line = (uint32_t)(format == LINES_LNOTAB ? line_by_lnotab(table, end, first_line, at)
                                                        : line_by_ranges(table, end, first_line, at));
    place.line = place.line <= HIGHEST_LINE ? place.line : 0;
    place.column = place.line && place.column <= HIGHEST_COLUMN ? place.column : 0;
    return place;
}
