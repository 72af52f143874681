#include "proof.h"

#include "../base/own_memory.h"
#include "code.h"

#include <stddef.h>

enum { MOST_FRAMES = 32, TYPE = 8, TABLE_BYTES = 32, TABLE_SIZE = 16, MOST_TABLE = 1 << 20, MOST_INSTRUCTION = 1 << 28 };

/* --- without asking ----------------------------------------------------------------------------------------------- */

static int copy_word(uintptr_t at, uintptr_t *word)
{
    return own_memory_read(word, at, sizeof *word) == sizeof *word;
}

static int is_a(uintptr_t object, const char *type)
{
    uintptr_t found;
    return object && object % sizeof(void *) == 0 && copy_word(object + TYPE, &found) && found == (uintptr_t)type;
}

/* Whether all of it is there. */
static int is_mapped(uintptr_t at, uint64_t bytes)
{
    char piece[256];
    while (bytes) {
        size_t now = bytes < sizeof piece ? (size_t)bytes : sizeof piece;
        if (own_memory_read(piece, at, now) != now)
            return 0;
        at += now;
        bytes -= now;
    }
    return 1;
}

static int text_is_sound(uintptr_t text, const struct python_api *api)
{
    enum { MOST_CHARACTERS = 1 << 16, WIDEST = 4 };
    uintptr_t length;
    return is_a(text, api->text_type) && copy_word(text + (uintptr_t)python_layout.text_length, &length) &&
           length <= MOST_CHARACTERS && is_mapped(text, (uintptr_t)python_layout.text_compact) &&
           python_text_length(text) == length && (length == 0 || is_mapped(text + (uintptr_t)python_layout.text_ascii, length));
}

static int code_is_sound(uintptr_t code, const struct python_api *api)
{
    const struct python_layout *l = &python_layout;
    uintptr_t file, name, table, bytes;
    uint32_t line;
    return is_a(code, api->code_type) && copy_word(code + (uintptr_t)l->file, &file) && text_is_sound(file, api) &&
           copy_word(code + (uintptr_t)l->name, &name) && text_is_sound(name, api) &&
           copy_word(code + (uintptr_t)l->line_table, &table) && is_a(table, api->bytes_type) &&
           copy_word(table + TABLE_SIZE, &bytes) && bytes <= MOST_TABLE && is_mapped(table + TABLE_BYTES, bytes) &&
           own_memory_read(&line, code + (uintptr_t)l->first_line, sizeof line) == sizeof line && line < MOST_INSTRUCTION;
}

static int frame_is_sound(uintptr_t frame, const struct python_api *api)
{
    const struct python_layout *l = &python_layout;
    enum { ON_HEAP = 112, ON_STACK = 80 };
    if (frame % sizeof(void *) != 0 || !is_mapped(frame, l->instruction_is_pointer ? ON_STACK : ON_HEAP))
        return 0;
    if (python_is_shim(frame))
        return 1;
    uint64_t from = l->instruction_is_pointer ? python_code(frame) + (uintptr_t)l->bytecode : 0;
    return code_is_sound(python_code(frame), api) && python_instruction(frame) - from < MOST_INSTRUCTION;
}

/* The innermost frame with code; 0: none, or something is not as it should be. */
static uintptr_t sound_frames(uintptr_t thread, const struct python_api *api, int *differs)
{
    const struct python_layout *l = &python_layout;
    uintptr_t word, frame, innermost = 0;
    *differs = 1;
    if (!copy_word(thread + (uintptr_t)l->frame_of_thread, &word) ||
        (l->frame_of_cframe >= 0 && word && !copy_word(word + (uintptr_t)l->frame_of_cframe, &word)))
        return 0;
    frame = word;
    for (int i = 0; i < MOST_FRAMES && frame; i++) {
        if (!frame_is_sound(frame, api))
            return 0;
        innermost = innermost || python_is_shim(frame) ? innermost : frame;
        frame = python_word(frame, l->outer);
    }
    *differs = 0;
    return innermost;
}

/* --- asking ------------------------------------------------------------------------------------------------------- */

static uintptr_t with_code(uintptr_t frame)
{
    while (frame && python_is_shim(frame))
        frame = python_word(frame, python_layout.outer);
    return frame;
}

static int text_agrees(uintptr_t text, const struct python_api *api)
{
    enum { ENOUGH = 64 };
    uint64_t length = python_text_length(text), most = length < ENOUGH ? length : ENOUGH;
    int same = api->text_length((void *)text) == (intptr_t)length;
    for (uint64_t at = 0; at < most && same; at++)
        same = api->character((void *)text, (intptr_t)at) == python_text_character(text, at);
    return same;
}

/* Whether the interpreter says the same of a frame and of those around it. */
static int agrees(uintptr_t frame, const struct python_api *api)
{
    void *object = api->frame(), *held = NULL;
    int same = object != NULL;
    for (int i = 0; i < MOST_FRAMES && same && object && (frame = with_code(frame)); i++) {
        uintptr_t code = python_code(frame);
        void *found = api->code_of ? api->code_of(object) : NULL;
        int line = (int)python_place_of(code, python_instruction(frame)).line, said = api->line_number(object);
        same = (!found || (uintptr_t)found == code) && (line == said || (line == 0 && said <= 0)) &&
               text_agrees(python_word(code, python_layout.file), api) && text_agrees(python_word(code, python_layout.name), api);
        if (found)
            api->release(found);
        void *outer = api->outer_of ? api->outer_of(object) : NULL;
        if (held)
            api->release(held);
        held = object = outer;
        frame = python_word(frame, python_layout.outer);
    }
    if (held)
        api->release(held);
    return same;
}

static enum python_proof prove(const struct python_api *api)
{
    int differs;
    uintptr_t thread = (uintptr_t)api->this_thread();
    if (!thread)
        return PYTHON_NOT_YET;
    uintptr_t frame = sound_frames(thread, api, &differs);
    if (differs)
        return PYTHON_DIFFERS;
    if (!frame)
        return PYTHON_NOT_YET;
    return !api->has_lock() || agrees(frame, api) ? PYTHON_PROVED : PYTHON_DIFFERS;
}

enum python_proof python_prove(const struct python_api *api)
{
    enum python_proof proof = prove(api);
    if (proof == PYTHON_DIFFERS && python_layout.other_kind_bit) {
        python_layout.text_kind_bit = python_layout.other_kind_bit;
        python_layout.other_kind_bit = 0;
        proof = prove(api);
    }
    return proof;
}
