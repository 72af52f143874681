/* Where CPython keeps what: offsets in bytes. */
#ifndef LAPSCOPE_PYTHON_LAYOUT_H
#define LAPSCOPE_PYTHON_LAYOUT_H

#include "memory.h"

enum python_line_format { LINES_LNOTAB /* 3.8, 3.9 */, LINES_RANGES /* 3.10 */, LINES_LOCATIONS /* 3.11 on */ };

struct python_layout {
    /* The threads of a process, for those who read from outside: in _PyRuntime the first interpreter, in that the next one and
     * its first thread, in PyThreadState the next one and its pthread_t */
    int16_t first_interpreter, next_interpreter, first_thread, next_thread, thread_number;
    /* PyThreadState: its innermost frame, or a word that points to where that stands */
    int16_t frame_of_thread;
    int16_t frame_of_cframe;          /* -1: the thread state has the frame itself */
    int16_t outer_cframe;             /* in a cframe, that of the activation outside of it; -1: there are none */
    /* a frame */
    int16_t outer, code, instruction;
    int16_t owner;                    /* -1: frames have none */
    int16_t is_entry;                 /* 3.11: the outermost of an activation; -1: frames do not say */
    uint8_t first_shim;               /* owners from there on: a frame without code that begins an activation */
    uint8_t instruction_is_pointer;   /* else it is an int */
    uint8_t bytes_an_instruction;     /* what it counts in, where it is an int */
    /* PyCodeObject */
    int16_t file, name, first_line, line_table;
    int16_t bytecode;                 /* where `instruction` is a pointer, what it is counted from */
    enum python_line_format lines;
    /* PyUnicodeObject, PyBytesObject */
    int16_t text_length, text_state, text_ascii, text_compact; /* the last two: where characters begin */
    uint8_t text_kind_bit;            /* of `kind` in the state; `compact` and `ascii` follow it */
    uint8_t other_kind_bit;           /* where it is in some of the version's; 0: it is where it is */
};

/* That of a version (0x030b0000 is 3.11); `runtime` is _PyRuntime, or NULL. Returns why there is none, or NULL. */
const char *python_layout_of(unsigned version, const void *runtime, struct python_layout *layout);

/* The one in force. */
extern PYTHON_OF_ITS_READER struct python_layout python_layout;

/* Where some of a version are built in one way, some in another: takes the other way from now on. Returns whether there is one. */
int python_layout_take_other(void);

/* Where the objects of a thread state stand. */
static inline uintptr_t python_word(uintptr_t object, int offset)
{
    return *(const uintptr_t *)python_memory_at(object + (uintptr_t)offset, sizeof(uintptr_t));
}

static inline uint32_t python_half_word(uintptr_t object, int offset)
{
    return *(const uint32_t *)python_memory_at(object + (uintptr_t)offset, sizeof(uint32_t));
}

static inline uintptr_t python_innermost(uintptr_t thread)
{
    const struct python_layout *l = &python_layout;
    uintptr_t at = python_word(thread, l->frame_of_thread);
    return l->frame_of_cframe >= 0 && at ? python_word(at, l->frame_of_cframe) : at;
}

/* References that are not counted have marks in the lowest bits from 3.14 on. */
static inline uintptr_t python_code(uintptr_t frame)
{
    return python_word(frame, python_layout.code) & ~(uintptr_t)3;
}

static inline uint64_t python_instruction(uintptr_t frame)
{
    const struct python_layout *l = &python_layout;
    return l->instruction_is_pointer ? python_word(frame, l->instruction)
                                     : python_half_word(frame, l->instruction);
}

static inline int python_is_shim(uintptr_t frame)
{
    const struct python_layout *l = &python_layout;
    return l->owner >= 0 && *(const uint8_t *)python_memory_at(frame + (uintptr_t)l->owner, 1) >= l->first_shim;
}

#endif
