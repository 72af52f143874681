#define _GNU_SOURCE
#include "interpreter.h"
#include "python.h"

#include <dlfcn.h>
#include <stddef.h>

static const void *object_of(uintptr_t address)
{
    Dl_info info;
    return dladdr((const void *)address, &info) ? info.dli_fbase : NULL;
}

/* Whether the activation whose outermost line this is stands in a native frame. `end`: where the frame's part of the stack ends. */
static int stands_in(const struct python_line *outermost, const struct python_native *frame, uintptr_t end)
{
    if (outermost->stands_at)
        return outermost->stands_at >= frame->stack && outermost->stands_at < end;
    return frame->address > python_interpreter.eval_begin && frame->address <= python_interpreter.eval_end;
}

static unsigned outermost_from(const struct python_lines *lines, unsigned at)
{
    while (at + 1 < lines->count && !lines->line[at].is_outermost)
        at++;
    return at;
}

/* Native frames further out than the last line that only say how the program or the thread was started: the C library's, and what
 * that was started by. */
static unsigned drop_start(const uintptr_t *to, unsigned count, unsigned last_line)
{
    const void *libc = object_of((uintptr_t)dlsym(RTLD_DEFAULT, "gnu_get_libc_version"));
    if (count > last_line + 1 && object_of(to[count - 2]) == libc)
        count--;
    while (count > last_line && object_of(to[count - 1]) == libc)
        count--;
    return count;
}

unsigned python_mix(const struct python_lines *lines, const struct python_native *native, unsigned count, uintptr_t *to,
                    unsigned most)
{
    unsigned made = 0, line = 0, behind_last_line = 0;
    for (unsigned i = 0; i < count && made < most; i++) {
        if (native[i].address < python_interpreter.code_begin || native[i].address >= python_interpreter.code_end) {
            to[made++] = native[i].address;
            continue;
        }
        unsigned outermost = outermost_from(lines, line);
        uintptr_t end = i + 1 < count ? native[i + 1].stack : UINTPTR_MAX;
        if (line == lines->count || !stands_in(&lines->line[outermost], &native[i], end))
            continue;
        while (line <= outermost && made < most)
            to[made++] = lines->line[line++].address;
        behind_last_line = made;
    }
    made = drop_start(to, made, behind_last_line);
    while (line < lines->count && made < most) /* further out than the native frames are known */
        to[made++] = lines->line[line++].address;
    return made;
}
