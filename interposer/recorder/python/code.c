#include "code.h"

#include <string.h>

/* --- text --------------------------------------------------------------------------------------------------------- */

/* A string's characters, of one, two or four bytes each. */
struct characters {
    uintptr_t at;             /* 0: it is none */
    uint64_t count;
    unsigned width, most;     /* bytes of one; of one in UTF-8, at the most */
};

static struct characters characters_of(uintptr_t string)
{
    const struct python_layout *l = &python_layout;
    uint32_t state = python_half_word(string, l->text_state) >> l->text_kind_bit;
    unsigned kind = state & 7, is_compact = state >> 3 & 1, is_ascii = state >> 4 & 1;
    if (!is_compact || (kind != 1 && kind != 2 && kind != 4))
        return (struct characters){0, 0, 1, 1};
    return (struct characters){string + (uintptr_t)(is_ascii ? l->text_ascii : l->text_compact),
                               python_word(string, l->text_length), kind, is_ascii ? 1 : kind == 4 ? 4 : kind + 1};
}

static uint32_t character_at(struct characters characters, uint64_t at)
{
    const void *it = python_memory_at(characters.at + at * characters.width, characters.width);
    switch (characters.width) {
    case 1:
        return *(const uint8_t *)it;
    case 2:
        return *(const uint16_t *)it;
    default:
        return *(const uint32_t *)it;
    }
}

uint64_t python_text_length(uintptr_t string)
{
    struct characters characters = characters_of(string);
    return characters.at ? characters.count : UINT64_MAX;
}

uint32_t python_text_character(uintptr_t string, uint64_t at)
{
    return character_at(characters_of(string), at);
}

/* RFC 3629. */
static size_t put_character(char *to, uint32_t c)
{
    if (c < 0x80) {
        to[0] = (char)c;
        return 1;
    }
    size_t more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    static const uint8_t first[] = {0, 0xc0, 0xe0, 0xf0};
    to[0] = (char)(first[more] | c >> (6 * more));
    for (size_t i = 1; i <= more; i++)
        to[i] = (char)(0x80 | (c >> (6 * (more - i)) & 0x3f));
    return more + 1;
}

static void copy_text(uintptr_t string, char *text, size_t bytes)
{
    struct characters characters = characters_of(string);
    size_t room = bytes - 1, used = 0;
    uint64_t fit = room / characters.most, first = characters.count > fit ? characters.count - fit : 0;
    for (uint64_t at = first; at < characters.count; at++) {
        uint32_t c = character_at(characters, at);
        used += put_character(text + used, c >= ' ' && c < 0x110000 ? c : '?');
    }
    text[used] = '\0';
    if (!used)
        memcpy(text, "?", 2);
}

void python_file_of(uintptr_t code, char text[PYTHON_FILE_BYTES])
{
    copy_text(python_word(code, python_layout.file), text, PYTHON_FILE_BYTES);
}

void python_name_of(uintptr_t code, char text[PYTHON_NAME_BYTES])
{
    copy_text(python_word(code, python_layout.name), text, PYTHON_NAME_BYTES);
    for (char *at = text; *at; at++) /* "<generic parameters of Grid>": policies have one word for it */
        *at = *at == ' ' ? '_' : *at;
}

/* --- lines -------------------------------------------------------------------------------------------------------- */

struct python_place python_place_of(uintptr_t code, uint64_t instruction)
{
    const struct python_layout *l = &python_layout;
    uint64_t at = l->instruction_is_pointer ? instruction - (code + (uintptr_t)l->bytecode)
                                            : instruction * l->bytes_an_instruction;
    uintptr_t table = python_word(code, l->line_table);
    uint64_t bytes = python_word(table, PYTHON_BYTES_SIZE);
    uint32_t first_line = python_half_word(code, l->first_line);
    if (bytes > PYTHON_MOST_TABLE)
        return (struct python_place){0, 0};
    return python_place_in(l->lines, python_memory_at(table + PYTHON_BYTES_TEXT, bytes), bytes, first_line, at);
}
