/* Numbers as DWARF writes them (DWARF 5, 7.6), read from front to end. */
#ifndef LAPSCOPE_FRAME_BYTES_H
#define LAPSCOPE_FRAME_BYTES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* What is left of a piece. `bad`: it ended too soon, or says what is not understood. */
struct bytes {
    const unsigned char *at, *end;
    int bad;
};

static inline uint64_t take(struct bytes *bytes, unsigned count)
{
    uint64_t value = 0;
    if ((size_t)(bytes->end - bytes->at) < count) {
        bytes->bad = 1;
        return 0;
    }
    memcpy(&value, bytes->at, count); /* little-endian, as the machines of frame_info.h are */
    bytes->at += count;
    return value;
}

static inline int64_t take_signed(struct bytes *bytes, unsigned count)
{
    unsigned unused = 64 - 8 * count;
    return (int64_t)(take(bytes, count) << unused) >> unused;
}

static inline uint64_t take_unsigned_leb(struct bytes *bytes)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        uint64_t byte = take(bytes, 1);
        value |= (byte & 0x7f) << shift;
        if (!(byte & 0x80))
            break;
    }
    return value;
}

static inline int64_t take_signed_leb(struct bytes *bytes)
{
    uint64_t value = 0, byte = 0x80;
    unsigned shift = 0;
    for (; shift < 64 && byte & 0x80; shift += 7) {
        byte = take(bytes, 1);
        value |= (byte & 0x7f) << shift;
    }
    if (shift < 64 && byte & 0x40)
        value |= UINT64_MAX << shift;
    return (int64_t)value;
}

#endif
