#include "job_text.h"

#include <string.h>

static void put_bytes(struct job_text *text, const char *bytes, size_t count)
{
    if (text->is_cut || count > text->bytes - text->used) {
        text->is_cut = 1;
        return;
    }
    memcpy(text->begin + text->used, bytes, count);
    text->used += count;
}

void job_put(struct job_text *text, const char *string)
{
    put_bytes(text, string, strlen(string));
}

void job_put_number(struct job_text *text, int64_t number, char end)
{
    char digits[24], *at = digits + sizeof digits;
    uint64_t rest = number < 0 ? -(uint64_t)number : (uint64_t)number;
    *--at = end;
    if (number != JOB_NULL) {
        do
            *--at = (char)('0' + rest % 10);
        while (rest /= 10);
        if (number < 0)
            *--at = '-';
    }
    put_bytes(text, at, (size_t)(digits + sizeof digits - at));
}

/* As job.def has it. */
static void put_byte(struct job_text *text, unsigned char byte)
{
    static const char hex[] = "0123456789abcdef";
    if (byte == '\\')
        put_bytes(text, "\\\\", 2);
    else if (byte == '\t')
        put_bytes(text, "\\t", 2);
    else if (byte == '\n')
        put_bytes(text, "\\n", 2);
    else if (byte < ' ' || byte == 0x7f)
        put_bytes(text, (char[]){'\\', 'x', hex[byte >> 4], hex[byte & 15]}, 4);
    else
        put_bytes(text, (const char *)&byte, 1);
}

void job_put_text(struct job_text *text, const char *value, char end)
{
    for (size_t i = 0; value && value[i] && i < JOB_LONGEST_TEXT; i++)
        put_byte(text, (unsigned char)value[i]);
    put_bytes(text, &end, 1);
}
