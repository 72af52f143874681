#include "proof.h"

#include "code.h"
#include "sound.h"

#include <stddef.h>

enum { MOST_FRAMES = 32 };

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
    const struct python_types types = {(uintptr_t)api->code_type, (uintptr_t)api->text_type, (uintptr_t)api->bytes_type};
    uintptr_t thread = (uintptr_t)api->this_thread(), frame;
    if (!thread)
        return PYTHON_NOT_YET;
    switch (python_frames_are_sound(thread, &types, &frame)) {
    case PYTHON_UNSOUND:
        return PYTHON_DIFFERS;
    case PYTHON_RUNS_NOTHING:
        return PYTHON_NOT_YET;
    default:
        return !api->has_lock() || agrees(frame, api) ? PYTHON_PROVED : PYTHON_DIFFERS;
    }
}

enum python_proof python_prove(const struct python_api *api)
{
    enum python_proof proof = prove(api);
    return proof == PYTHON_DIFFERS && python_layout_take_other() ? prove(api) : proof;
}
