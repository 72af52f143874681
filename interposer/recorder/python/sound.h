/* Whether frames are as the layout says, as far as that can be told without asking the interpreter. */
#ifndef LAPSCOPE_PYTHON_SOUND_H
#define LAPSCOPE_PYTHON_SOUND_H

#include <stdint.h>

/* Where these objects stand. */
struct python_types {
    uintptr_t code, text, bytes;       /* PyCode_Type, PyUnicode_Type, PyBytes_Type */
};

enum python_soundness { PYTHON_SOUND, PYTHON_RUNS_NOTHING, PYTHON_UNSOUND };

/* Of the innermost frames of a thread, read by copies, so that nothing crashes; `innermost`: the first of them that has code. */
enum python_soundness python_frames_are_sound(uintptr_t thread, const struct python_types *types, uintptr_t *innermost);

#endif
