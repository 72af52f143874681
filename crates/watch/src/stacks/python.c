/* The lines of Python that a thread of another process is inside of, by what the recorder reads its own by. */
#include "../../../../interposer/recorder/python/code.h"
#include "../../../../interposer/recorder/python/mix.h"
#include "../../../../interposer/recorder/python/sound.h"
#include "../../../../interposer/recorder/python/walk.h"

#include <string.h>

/* python.rs writes down where the fields lie: a change on either side must not build. */
struct python_elsewhere {
    unsigned version;                  /* 0x030b0000 is 3.11 */
    unsigned number_offset;            /* of the kernel's number of a thread, in what its pthread_t points to */
    uintptr_t runtime;                 /* _PyRuntime */
    const void *runtime_copy;
    struct python_types types;
    void *scratch;                     /* of PYTHON_MOST_TABLE bytes */
    size_t (*copy)(void *to, uintptr_t from, size_t bytes);
};

struct python_text {
    char file[PYTHON_FILE_BYTES], name[PYTHON_NAME_BYTES];
    struct python_place place;
};

#define LAYOUT(type, field, offset) _Static_assert(offsetof(struct type, field) == (offset), "python.rs: " #type "." #field)
_Static_assert(PYTHON_MOST_FRAMES == 128 && PYTHON_MOST_TABLE == 1 << 20, "python.rs");
LAYOUT(python_elsewhere, types, 24);
LAYOUT(python_elsewhere, scratch, 48);
LAYOUT(python_elsewhere, copy, 56);
LAYOUT(python_text, name, 1024);
LAYOUT(python_text, place, 1136);
LAYOUT(python_lines, count, 3072);
LAYOUT(python_native, stack, 8);
LAYOUT(python_machine_code, eval_end, 24);
_Static_assert(sizeof(struct python_text) == 1144 && sizeof(struct python_lines) == 3080, "python.rs");

static _Thread_local const struct python_elsewhere *elsewhere;

size_t python_memory_copy(void *to, uintptr_t from, size_t bytes)
{
    return elsewhere->copy(to, from, bytes);
}

const void *python_memory_at(uintptr_t from, size_t bytes)
{
    bytes = bytes < PYTHON_MOST_TABLE ? bytes : PYTHON_MOST_TABLE;
    size_t copied = elsewhere->copy(elsewhere->scratch, from, bytes);
    memset((char *)elsewhere->scratch + copied, 0, bytes - copied);
    return elsewhere->scratch;
}

/* Why nothing can be read of such an interpreter; NULL: it is known. */
const char *python_elsewhere_problem(const struct python_elsewhere *it)
{
    struct python_layout layout;
    return python_layout_of(it->version, it->runtime_copy, &layout);
}

/* The state of the thread with that number; 0: it has none, and runs no Python. */
static uintptr_t thread_with(unsigned number)
{
    enum { MOST = 4096 };              /* more are a chain that somebody is changing */
    const struct python_layout *l = &python_layout;
    unsigned seen = 0;
    uintptr_t interpreter = python_word(elsewhere->runtime, l->first_interpreter);
    for (; interpreter && seen < MOST; interpreter = python_word(interpreter, l->next_interpreter), seen++) {
        uintptr_t thread = python_word(interpreter, l->first_thread);
        for (; thread && seen < MOST; thread = python_word(thread, l->next_thread), seen++)
            if (python_half_word(python_word(thread, l->thread_number), (int)elsewhere->number_offset) == number)
                return thread;
    }
    return 0;
}

static void read_lines(uintptr_t thread, struct python_lines *lines, struct python_text *texts)
{
    struct python_walk walk = python_walk_begin(thread);
    for (uintptr_t frame; (frame = python_walk_next(&walk));) {
        if (lines->count == PYTHON_MOST_FRAMES) {
            lines->truncated = 1;
            return;
        }
        uintptr_t code = python_code(frame);
        struct python_text *text = &texts[lines->count];
        struct python_line *line = &lines->line[lines->count];
        python_file_of(code, text->file);
        python_name_of(code, text->name);
        text->place = python_place_of(code, python_instruction(frame));
        line->address = (uintptr_t)1 << 63 | lines->count++;
        line->is_outermost = python_walk_ends_activation(&walk, frame, &line->stands_at);
    }
}

/* Lines of the thread with that number, innermost first, and what each is called: room for PYTHON_MOST_FRAMES. Each line's address
 * is its place among them, with the highest bit set. */
enum python_soundness python_elsewhere_read(const struct python_elsewhere *it, unsigned number, struct python_lines *lines,
                                            struct python_text *texts)
{
    uintptr_t innermost;
    lines->count = 0;
    lines->truncated = 0;
    elsewhere = it;
    if (python_layout_of(it->version, it->runtime_copy, &python_layout))
        return PYTHON_UNSOUND;
    uintptr_t thread = thread_with(number);
    if (!thread)
        return PYTHON_RUNS_NOTHING;
    enum python_soundness soundness = python_frames_are_sound(thread, &it->types, &innermost);
    if (soundness == PYTHON_UNSOUND && python_layout_take_other())
        soundness = python_frames_are_sound(thread, &it->types, &innermost);
    if (soundness == PYTHON_SOUND)
        read_lines(thread, lines, texts);
    return soundness;
}
