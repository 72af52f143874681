#include "layout.h"

#include <string.h>

PYTHON_OF_ITS_READER struct python_layout python_layout;

/* What PyCodeObject, strings and frames of 3.8 to 3.12 look like, from their headers; 3.13 and later say it themselves. */
static const struct python_layout heap_frames = {
    .first_interpreter = 32, .next_interpreter = 0, .first_thread = 8, .next_thread = 8, .thread_number = 176,
    .frame_of_thread = 24, .frame_of_cframe = -1, .outer_cframe = -1, .outer = 24, .code = 32, .instruction = 104,
    .owner = -1, .is_entry = -1, .bytes_an_instruction = 1, .file = 104, .name = 112, .first_line = 40,
    .line_table = 120, .lines = LINES_LNOTAB, .text_length = 16, .text_state = 32, .text_ascii = 48, .text_compact = 72,
    .text_kind_bit = 2};

static const struct python_layout stack_frames = {
    .first_interpreter = 40, .next_interpreter = 0, .first_thread = 16, .next_thread = 8, .thread_number = 152,
    .frame_of_thread = 56, .frame_of_cframe = 8, .outer_cframe = 16, .outer = 48, .code = 32, .instruction = 56,
    .owner = -1, .is_entry = 68, .instruction_is_pointer = 1, .file = 112, .name = 128,
    .first_line = 72, .line_table = 136, .bytecode = 184, .lines = LINES_LOCATIONS, .text_length = 16, .text_state = 32,
    .text_ascii = 48, .text_compact = 72, .text_kind_bit = 2};

static const struct python_layout shimmed_frames = {
    .first_interpreter = 40, .next_interpreter = 0, .first_thread = 72, .next_thread = 8, .thread_number = 136,
    .frame_of_thread = 56, .frame_of_cframe = 0, .outer_cframe = -1, .outer = 8, .code = 0, .instruction = 56, .owner = 70,
    .is_entry = -1, .first_shim = 3, .instruction_is_pointer = 1, .file = 112, .name = 128, .first_line = 68,
    .line_table = 136, .bytecode = 192, .lines = LINES_LOCATIONS, .text_length = 16, .text_state = 32, .text_ascii = 40,
    .text_compact = 56, .text_kind_bit = 2};

/* Members of _Py_DebugOffsets, by their number in words. */
struct debug_offsets {
    uint8_t first_interpreter, next_interpreter, first_thread, next_thread, thread_number, current_frame, previous, executable,
        instruction, owner, file, name, line_table, first_line, bytecode, text_state, text_length, text_size;
};
static const struct debug_offsets of_3_13 = {5, 8, 9, 21, 24, 23, 29, 30, 31, 33, 35, 37, 38, 39, 43, 68, 69, 70};
static const struct debug_offsets of_3_14 = {5, 8, 9, 24, 27, 26, 32, 33, 34, 36, 40, 42, 43, 44, 48, 78, 79, 80};

enum { COOKIE_BYTES = 8, VERSION = 1, FREE_THREADED = 2, HIGHEST_OFFSET = INT16_MAX, REST_OF_COMPACT = 16 };

static const char *from_debug_offsets(unsigned version, const uint64_t *words, struct python_layout *layout)
{
    if (!words || memcmp(words, "xdebugpy", COOKIE_BYTES) != 0 || words[VERSION] >> 16 != version >> 16)
        return "it does not say where its frames are";
    if (words[FREE_THREADED])
        return "those without a global lock are not known";
    const struct debug_offsets *at = version >> 16 == 0x030d ? &of_3_13 : &of_3_14;
    const uint8_t *const members = (const uint8_t *)at;
    for (size_t i = 0; i < sizeof *at; i++)
        if (words[members[i]] > HIGHEST_OFFSET)
            return "it says what cannot be of where its frames are";
#define OFFSET(member) (int16_t)words[at->member]
    *layout = (struct python_layout){
        .first_interpreter = OFFSET(first_interpreter), .next_interpreter = OFFSET(next_interpreter),
        .first_thread = OFFSET(first_thread), .next_thread = OFFSET(next_thread), .thread_number = OFFSET(thread_number),
        .frame_of_thread = OFFSET(current_frame), .frame_of_cframe = -1, .outer_cframe = -1, .outer = OFFSET(previous),
        .code = OFFSET(executable), .instruction = OFFSET(instruction), .owner = OFFSET(owner), .is_entry = -1,
        .first_shim = 3, .instruction_is_pointer = 1, .file = OFFSET(file), .name = OFFSET(name),
        .first_line = OFFSET(first_line), .line_table = OFFSET(line_table), .bytecode = OFFSET(bytecode),
        .lines = LINES_LOCATIONS, .text_length = OFFSET(text_length), .text_state = OFFSET(text_state),
        .text_ascii = OFFSET(text_size), .text_compact = (int16_t)(OFFSET(text_size) + REST_OF_COMPACT),
        .text_kind_bit = 2, .other_kind_bit = version >> 16 == 0x030d ? 0 : 16};
#undef OFFSET
    return NULL;
}

const char *python_layout_of(unsigned version, const void *runtime, struct python_layout *layout)
{
    switch (version >> 16) {
    case 0x0308:
    case 0x0309:
        *layout = heap_frames;
        return NULL;
    case 0x030a: /* f_lasti counts instructions, and stands where f_lineno no longer does */
        *layout = heap_frames;
        layout->instruction = 96;
        layout->bytes_an_instruction = 2;
        layout->lines = LINES_RANGES;
        return NULL;
    case 0x030b:
        *layout = stack_frames;
        return NULL;
    case 0x030c:
        *layout = shimmed_frames;
        return NULL;
    case 0x030d:
    case 0x030e:
        return from_debug_offsets(version, runtime, layout);
    default:
        return "CPython 3.8 to 3.14 are known";
    }
}

int python_layout_take_other(void)
{
    if (!python_layout.other_kind_bit)
        return 0;
    python_layout.text_kind_bit = python_layout.other_kind_bit;
    python_layout.other_kind_bit = 0;
    return 1;
}
