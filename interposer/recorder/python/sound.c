#include "sound.h"

#include "code.h"

enum { MOST_FRAMES = 32, TYPE = 8, MOST_INSTRUCTION = 1 << 28 };

static int copy_word(uintptr_t at, uintptr_t *word)
{
    return python_memory_copy(word, at, sizeof *word) == sizeof *word;
}

static int is_a(uintptr_t object, uintptr_t type)
{
    uintptr_t found;
    return object && object % sizeof(void *) == 0 && copy_word(object + TYPE, &found) && found == type;
}

/* Whether all of it is there. */
static int is_mapped(uintptr_t at, uint64_t bytes)
{
    char piece[256];
    while (bytes) {
        size_t now = bytes < sizeof piece ? (size_t)bytes : sizeof piece;
        if (python_memory_copy(piece, at, now) != now)
            return 0;
        at += now;
        bytes -= now;
    }
    return 1;
}

static int text_is_sound(uintptr_t text, const struct python_types *types)
{
    enum { MOST_CHARACTERS = 1 << 16, WIDEST = 4 };
    uintptr_t length;
    return is_a(text, types->text) && copy_word(text + (uintptr_t)python_layout.text_length, &length) &&
           length <= MOST_CHARACTERS && is_mapped(text, (uintptr_t)python_layout.text_compact) &&
           python_text_length(text) == length && (length == 0 || is_mapped(text + (uintptr_t)python_layout.text_ascii, length));
}

static int code_is_sound(uintptr_t code, const struct python_types *types)
{
    const struct python_layout *l = &python_layout;
    uintptr_t file, name, table, bytes;
    uint32_t line;
    return is_a(code, types->code) && copy_word(code + (uintptr_t)l->file, &file) && text_is_sound(file, types) &&
           copy_word(code + (uintptr_t)l->name, &name) && text_is_sound(name, types) &&
           copy_word(code + (uintptr_t)l->line_table, &table) && is_a(table, types->bytes) &&
           copy_word(table + PYTHON_BYTES_SIZE, &bytes) && bytes <= PYTHON_MOST_TABLE && is_mapped(table + PYTHON_BYTES_TEXT, bytes) &&
           python_memory_copy(&line, code + (uintptr_t)l->first_line, sizeof line) == sizeof line && line < MOST_INSTRUCTION;
}

static int frame_is_sound(uintptr_t frame, const struct python_types *types)
{
    const struct python_layout *l = &python_layout;
    enum { ON_HEAP = 112, ON_STACK = 80 };
    if (frame % sizeof(void *) != 0 || !is_mapped(frame, l->instruction_is_pointer ? ON_STACK : ON_HEAP))
        return 0;
    if (python_is_shim(frame))
        return 1;
    uint64_t from = l->instruction_is_pointer ? python_code(frame) + (uintptr_t)l->bytecode : 0;
    return code_is_sound(python_code(frame), types) && python_instruction(frame) - from < MOST_INSTRUCTION;
}

enum python_soundness python_frames_are_sound(uintptr_t thread, const struct python_types *types, uintptr_t *innermost)
{
    const struct python_layout *l = &python_layout;
    uintptr_t word, frame;
    *innermost = 0;
    if (!copy_word(thread + (uintptr_t)l->frame_of_thread, &word) ||
        (l->frame_of_cframe >= 0 && word && !copy_word(word + (uintptr_t)l->frame_of_cframe, &word)))
        return PYTHON_UNSOUND;
    frame = word;
    for (int i = 0; i < MOST_FRAMES && frame; i++) {
        if (!frame_is_sound(frame, types))
            return PYTHON_UNSOUND;
        *innermost = *innermost || python_is_shim(frame) ? *innermost : frame;
        frame = python_word(frame, l->outer);
    }
    return *innermost ? PYTHON_SOUND : PYTHON_RUNS_NOTHING;
}
