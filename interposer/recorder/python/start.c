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
    return python_mix_frames(&python_interpreter.code, lines, native, count, drop_start, to, most);
}
