#define _GNU_SOURCE
#include "log.h"

#include "held.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Writes without dying of a closed standard error, or of a file at its limit. */
static void write_quietly(const char *line, size_t bytes)
{
    struct held held;
    held_begin(&held);
    ssize_t written = write(STDERR_FILENO, line, bytes);
    (void)written; /* there is nobody left to tell */
    held_end(&held);
}

/* Bytes of the character at `text` when it is one that a terminal prints; 0 when it is none (UTF-8 that is damaged or
 * ends early among them) or could command one: C0, DEL, C1, what turns the direction of text, separators of lines. */
static size_t printable(const unsigned char *text)
{
    if (text[0] < 0x80)
        return text[0] >= ' ' && text[0] != 0x7f;
    size_t bytes = text[0] >= 0xf0 ? 4 : text[0] >= 0xe0 ? 3 : 2;
    if (text[0] < 0xc2 || text[0] > 0xf4)
        return 0;
    unsigned letter = text[0] & (0x7fu >> bytes);
    for (size_t i = 1; i < bytes; i++) {
        if ((text[i] & 0xc0) != 0x80) /* the end of the text, too */
            return 0;
        letter = letter << 6 | (text[i] & 0x3f);
    }
    static const unsigned least[] = {0, 0, 0x80, 0x800, 0x10000};
    int is_text = letter >= least[bytes] && letter <= 0x10ffff && (letter < 0xd800 || letter > 0xdfff);
    int is_hostile = letter < 0xa0 || letter == 0x61c || letter == 0x200e || letter == 0x200f ||
                     (letter >= 0x2028 && letter <= 0x202e) || (letter >= 0x2066 && letter <= 0x2069) || letter == 0xfeff;
    return is_text && !is_hostile ? bytes : 0;
}

/* Names in a message are somebody else's: what is not printable is shown as \x1b. Returns the bytes written. */
static size_t show(char *out, size_t room, const char *message)
{
    size_t used = 0;
    for (const unsigned char *text = (const unsigned char *)message; *text;) {
        size_t bytes = printable(text);
        if (used + 5 > room) /* an escape and its zero, or any character */
            break;
        if (bytes) {
            memcpy(out + used, text, bytes);
            used += bytes;
        } else {
            used += (size_t)snprintf(out + used, room - used, "\\x%02x", *text);
        }
        text += bytes ? bytes : 1;
    }
    return used;
}

/* One write a line, so that ranks sharing a terminal do not cut each other's words. */
static void write_line(const char *format, va_list args)
{
    char message[4096 + 256], line[sizeof message];
    int saved_errno = errno;
    if (vsnprintf(message, sizeof message, format, args) < 0)
        message[0] = '\0';
    size_t used = (size_t)snprintf(line, sizeof line, "lapscope: ");
    used += show(line + used, sizeof line - used - 1, message);
    line[used++] = '\n';
    write_quietly(line, used);
    errno = saved_errno;
}

void log_line(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    write_line(format, args);
    va_end(args);
}

int log_once(int *said, const char *format, ...)
{
    if (__atomic_exchange_n(said, 1, __ATOMIC_RELAXED))
        return 0;
    va_list args;
    va_start(args, format);
    write_line(format, args);
    va_end(args);
    return 1;
}

int log_first_on_node(void)
{
    static const char *const local_ranks[] = {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"};
    for (size_t i = 0; i < sizeof local_ranks / sizeof local_ranks[0]; i++) {
        const char *value = getenv(local_ranks[i]);
        if (value && *value)
            return !strcmp(value, "0");
    }
    return 1;
}
