/* Which line an instruction is of, by the table of its code object: the three formats that CPython 3.8 to 3.14 have. */
#ifndef LAPSCOPE_PYTHON_LINE_TABLE_H
#define LAPSCOPE_PYTHON_LINE_TABLE_H

#include "layout.h"

struct python_place {
    uint32_t line, column;        /* from 1; 0: not known */
};

/* `at` bytes from the first instruction. */
struct python_place python_place_in(enum python_line_format format, const uint8_t *table, uint64_t bytes, uint32_t first_line,
                                    uint64_t at);

#endif
