/*
 * The packed form of the spool's hot records: a type byte, two bytes that hold the length of each field (3 bits a
 * field, field 0 lowest), and the fields, little-endian, 0 to 7 bytes each. schema/spool.h says what the fields are.
 *
 * Encoding has no branches: each field is stored as a whole word and the next one is laid over its unused bytes.
 */
#ifndef LAPSCOPE_SPOOL_CODEC_H
#define LAPSCOPE_SPOOL_CODEC_H

#include "../../../schema/spool.h"

#include <stddef.h>
#include <string.h>

enum { SPOOL_HOT_HEAD = 3, SPOOL_HOT_MAX = SPOOL_HOT_HEAD + 7 * SPOOL_HOT_FIELDS + 8 }; /* with what may be scribbled */

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "fields are stored as the machine's own words");

/* Small numbers of either sign as small numbers. */
static inline uint64_t spool_zigzag(int64_t value)
{
    return (uint64_t)value << 1 ^ (value < 0 ? UINT64_MAX : 0);
}

static inline int64_t spool_unzigzag(uint64_t code)
{
    return (int64_t)(code >> 1 ^ (code & 1 ? UINT64_MAX : 0));
}

/* Bytes that a value below 2^56 takes; 0 for 0. */
static inline unsigned spool_field_bytes(uint64_t value)
{
    unsigned highest_bit = 63u ^ (unsigned)__builtin_clzll(value << 1 | 1); /* of twice the value: one instruction */
    return (highest_bit + 7) >> 3;
}

static inline unsigned char *spool_put_unchecked(unsigned char *at, enum spool_record type, const uint64_t *fields,
                                                 unsigned count)
{
    unsigned char *next = at + SPOOL_HOT_HEAD;
    size_t bytes[SPOOL_HOT_FIELDS], lengths = 0;
#pragma GCC unroll 5
    for (unsigned i = 0; i < count; i++) {
        bytes[i] = spool_field_bytes(fields[i]);
        memcpy(next, &fields[i], sizeof fields[i]);
        next += bytes[i];
    }
#pragma GCC unroll 5
    for (unsigned i = count; i-- > 0;) /* an addition for each, which shifts as well */
        lengths = lengths * 8 + bytes[i];
    at[0] = (unsigned char)type;
    at[1] = (unsigned char)lengths;
    at[2] = (unsigned char)(lengths >> 8);
    return next;
}

/* Fields too large can only be differences of times that ran backwards: they become 0, and the rest is kept. */
static __attribute__((noinline, cold, unused)) unsigned char *spool_put_clamped(unsigned char *at, enum spool_record type,
                                                                               const uint64_t *fields, unsigned count)
{
    uint64_t clamped[SPOOL_HOT_FIELDS];
    for (unsigned i = 0; i < count; i++)
        clamped[i] = fields[i] >> 56 ? 0 : fields[i];
    return spool_put_unchecked(at, type, clamped, count);
}

/* Writes a record at `at`, where SPOOL_HOT_MAX bytes must be free; returns the first byte behind it. */
static inline unsigned char *spool_put(unsigned char *at, enum spool_record type, const uint64_t *fields, unsigned count)
{
    uint64_t all = 0;
#pragma GCC unroll 5
    for (unsigned i = 0; i < count; i++)
        all |= fields[i];
    if (__builtin_expect(all >> 56 != 0, 0)) { /* a length of 8 would spoil every record behind this one */
        uint64_t own[SPOOL_HOT_FIELDS]; /* that of the caller stays in registers */
#pragma GCC unroll 5
        for (unsigned i = 0; i < count; i++)
            own[i] = fields[i];
        return spool_put_clamped(at, type, own, count);
    }
    return spool_put_unchecked(at, type, fields, count);
}

/* Reads a record's fields; those that are absent are 0. Returns the first byte behind it, NULL when it goes past `end`.
 */
static inline const unsigned char *spool_get(const unsigned char *at, const unsigned char *end,
                                             uint64_t fields[SPOOL_HOT_FIELDS])
{
    if (end - at < SPOOL_HOT_HEAD)
        return NULL;
    unsigned lengths = at[1] | (unsigned)at[2] << 8;
    int words = end - at >= SPOOL_HOT_MAX; /* then reading whole words stays inside */
    at += SPOOL_HOT_HEAD;
    for (unsigned i = 0; i < SPOOL_HOT_FIELDS; i++, lengths >>= 3) {
        unsigned bytes = lengths & 7;
        uint64_t word = 0;
        if (words) {
            memcpy(&word, at, sizeof word);
            word &= ((uint64_t)1 << 8 * bytes) - 1;
        } else {
            if ((size_t)(end - at) < bytes)
                return NULL;
            memcpy(&word, at, bytes);
        }
        fields[i] = word;
        at += bytes;
    }
    return at;
}

/* The first byte behind a record, NULL when it goes past `end`. */
static inline const unsigned char *spool_skip(const unsigned char *at, const unsigned char *end)
{
    if (end - at < SPOOL_HOT_HEAD)
        return NULL;
    unsigned bytes = SPOOL_HOT_HEAD;
    unsigned lengths = at[1] | (unsigned)at[2] << 8;
    for (unsigned i = 0; i < SPOOL_HOT_FIELDS; i++, lengths >>= 3)
        bytes += lengths & 7;
    return (size_t)(end - at) < bytes ? NULL : at + bytes;
}

#endif
