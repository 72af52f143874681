/* What a code object is of. */
#ifndef LAPSCOPE_PYTHON_CODE_H
#define LAPSCOPE_PYTHON_CODE_H

#include "line_table.h"

#include <stddef.h>

enum { PYTHON_FILE_BYTES = 1024, PYTHON_NAME_BYTES = 112 };
enum { PYTHON_BYTES_SIZE = 16, PYTHON_BYTES_TEXT = 32 }; /* of a PyBytesObject: how many it has, and where they begin */

/* Terminated, in UTF-8; what is longer is cut at its front, what is not text is "?". */
void python_file_of(uintptr_t code, char text[PYTHON_FILE_BYTES]);
void python_name_of(uintptr_t code, char text[PYTHON_NAME_BYTES]);

/* How many characters a string has, UINT64_MAX where it is not as strings are; and one of them. For proofs. */
uint64_t python_text_length(uintptr_t string);
uint32_t python_text_character(uintptr_t string, uint64_t at);

/* Tables of lines that are longer are none. */
enum { PYTHON_MOST_TABLE = 1 << 20 };

/* Of the instruction that a frame has. */
struct python_place python_place_of(uintptr_t code, uint64_t instruction);

#endif
