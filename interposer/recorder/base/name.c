#include "name.h"

#include "log.h"
#include "own_memory.h"

#include <errno.h>
#include <string.h>

enum { PAGE_BYTES = 4096 };

/* Copies what is mapped of NAME_BYTES. Returns how many bytes. */
static size_t copy(uintptr_t address, char *to)
{
    static int said;
    size_t bytes = own_memory_read(to, address, NAME_BYTES);
    if (!bytes && (errno == EPERM || errno == ENOSYS))
        log_once(&said, "names that the program gives to MPI_Pcontrol cannot be read (process_vm_readv: %s): regions are not "
                 "recorded", strerror(errno));
    return bytes;
}

/* Of the character that begins at `at`, as UTF-8 has it; 0: there is none. The text ends with a zero, which is no part of any. */
static unsigned character(const unsigned char *at, uint32_t *code)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    unsigned bytes = *at < 0x80 ? 1 : *at >> 5 == 6 ? 2 : *at >> 4 == 14 ? 3 : *at >> 3 == 30 ? 4 : 0;
    *code = bytes > 1 ? *at & (0x7fu >> bytes) : *at;
    for (unsigned i = 1; i < bytes; i++) {
        if (at[i] >> 6 != 2)
            return 0;
        *code = *code << 6 | (at[i] & 63);
    }
    int is_surrogate = *code >= 0xd800 && *code <= 0xdfff;
    return bytes && *code >= least[bytes] && *code <= 0x10ffff && !is_surrogate ? bytes : 0;
}

/* Controls, separators of lines, what turns the direction of writing, and what is no character print nothing. */
static int is_printable(uint32_t code)
{
    int is_control = code < 0x20 || (code >= 0x7f && code < 0xa0);
    int is_separator = code >= 0x2028 && code <= 0x202e, is_isolate = code >= 0x2066 && code <= 0x2069;
    return !is_control && !is_separator && !is_isolate && code != 0xfeff && (code & 0xfffe) != 0xfffe;
}

int name_at(uintptr_t address, char name[NAME_BYTES])
{
    if (address < PAGE_BYTES || address > UINTPTR_MAX - NAME_BYTES)
        return 0;
    const char *end = memchr(name, '\0', copy(address, name));
    if (!end || end == name)
        return 0;
    for (const unsigned char *at = (const unsigned char *)name; *at;) {
        uint32_t code;
        unsigned bytes = character(at, &code);
        if (!bytes || !is_printable(code))
            return 0;
        at += bytes;
    }
    size_t length = (size_t)(end - name);
    memset(name + length, 0, NAME_BYTES - length);
    return 1;
}
