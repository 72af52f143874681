#include "mix.h"

#include <stddef.h>

/* Whether the activation whose outermost line this is stands in a native frame. `end`: where the frame's part of the stack ends. */
static int stands_in(const struct python_machine_code *code, const struct python_line *outermost, const struct python_native *frame,
                     uintptr_t end)
{
    if (outermost->stands_at)
        return outermost->stands_at >= frame->stack && outermost->stands_at < end;
    return frame->address > code->eval_begin && frame->address <= code->eval_end;
}

static unsigned outermost_from(const struct python_lines *lines, unsigned at)
{
    while (at + 1 < lines->count && !lines->line[at].is_outermost)
        at++;
    return at;
}

unsigned python_mix_frames(const struct python_machine_code *code, const struct python_lines *lines, const struct python_native *native,
                           unsigned count, unsigned (*drop_start)(const uintptr_t *to, unsigned count, unsigned last_line),
                           uintptr_t *to, unsigned most)
{
    unsigned made = 0, line = 0, behind_last_line = 0;
    for (unsigned i = 0; i < count && made < most; i++) {
        if (native[i].address < code->begin || native[i].address >= code->end) {
            to[made++] = native[i].address;
            continue;
        }
        unsigned outermost = outermost_from(lines, line);
        uintptr_t end = i + 1 < count ? native[i + 1].stack : UINTPTR_MAX;
        if (line == lines->count || !stands_in(code, &lines->line[outermost], &native[i], end))
            continue;
        while (line <= outermost && made < most)
            to[made++] = lines->line[line++].address;
        behind_last_line = made;
    }
    made = drop_start ? drop_start(to, made, behind_last_line) : made;
    while (line < lines->count && made < most) /* further out than the native frames are known */
        to[made++] = lines->line[line++].address;
    return made;
}
