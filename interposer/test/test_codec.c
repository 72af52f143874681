/* The packed hot records: recorder/spool/codec.h against schema/spool.h. */
#include "check.h"
#include "support.h"

#include "../recorder/spool/codec.h"

#include <stdlib.h>

static const uint64_t largest = ((uint64_t)1 << 56) - 1;

/* Bytes written out by hand from the format's description. */
static void test_known_bytes(void)
{
    const uint64_t fields[] = {0x1234, 0, 0xff, 0, 0xfffffffffe};
    unsigned char record[SPOOL_HOT_MAX];
    unsigned char *end = spool_put(record, SPOOL_CALL, fields, 5);
    /* 2 + 0 * 8 + 1 * 64 + 0 * 512 + 5 * 4096 = 0x5042 */
    static const unsigned char by_hand[] = {16, 0x42, 0x50, 0x34, 0x12, 0xff, 0xfe, 0xff, 0xff, 0xff, 0xff};
    CHECK_EQUAL(end - record, sizeof by_hand);
    CHECK(memcmp(record, by_hand, sizeof by_hand) == 0);
}

static void test_lengths(void)
{
    CHECK_EQUAL(spool_field_bytes(0), 0);
    for (unsigned bytes = 1; bytes <= 7; bytes++) {
        uint64_t first = (uint64_t)1 << 8 * (bytes - 1), last = ((uint64_t)1 << 8 * bytes) - 1;
        CHECK_EQUAL(spool_field_bytes(first), bytes);
        CHECK_EQUAL(spool_field_bytes(last), bytes);
    }
}

/* Writes, reads back from a buffer that ends where the record does, and from one byte less. */
static int round_trips(enum spool_record type, const uint64_t *fields, unsigned count)
{
    unsigned char record[SPOOL_HOT_MAX];
    uint64_t exact[SPOOL_HOT_FIELDS], roomy[SPOOL_HOT_FIELDS], sum = SPOOL_HOT_HEAD;
    memset(record, 0xee, sizeof record);
    unsigned char *end = spool_put(record, type, fields, count);
    size_t bytes = (size_t)(end - record);
    unsigned char *copy = malloc(bytes); /* so that the sanitizer sees a byte too many */
    memcpy(copy, record, bytes);
    int good = copy[0] == type && spool_get(copy, copy + bytes, exact) == copy + bytes &&
               spool_skip(copy, copy + bytes) == copy + bytes && spool_get(record, record + sizeof record, roomy) == end &&
               spool_get(copy, copy + bytes - 1, roomy) == NULL && spool_skip(copy, copy + bytes - 1) == NULL;
    spool_get(record, record + sizeof record, roomy);
    for (unsigned i = 0; i < SPOOL_HOT_FIELDS; i++) {
        uint64_t expected = i < count ? fields[i] : 0;
        good = good && exact[i] == expected && roomy[i] == expected;
        sum += spool_field_bytes(expected);
    }
    free(copy);
    return good && sum == bytes;
}

static void test_all_lengths(void)
{
    for (unsigned combination = 0; combination < 1u << 15; combination++) {
        uint64_t fields[SPOOL_HOT_FIELDS];
        for (unsigned i = 0; i < SPOOL_HOT_FIELDS; i++) {
            unsigned bytes = combination >> 3 * i & 7;
            fields[i] = bytes ? largest >> (56 - 8 * bytes) : 0;
        }
        if (!round_trips(SPOOL_REQUEST, fields, SPOOL_HOT_FIELDS)) {
            CHECK_EQUAL(combination, -1);
            return;
        }
    }
    CHECK(1);
}


static void test_random_values(void)
{
    uint64_t state = 42;
    unsigned wrong = 0;
    for (unsigned i = 0; i < 200000; i++) {
        uint64_t fields[SPOOL_HOT_FIELDS];
        unsigned count = 1 + (unsigned)(support_random(&state) % SPOOL_HOT_FIELDS);
        for (unsigned k = 0; k < count; k++)
            fields[k] = (support_random(&state) & largest) >> support_random(&state) % 57;
        wrong += !round_trips((enum spool_record)(SPOOL_CALL + i % 4), fields, count);
    }
    CHECK_EQUAL(wrong, 0);
}

/* A clock that ran backwards: that field is 0, its neighbours and the record behind it are whole. */
static void test_too_large(void)
{
    const uint64_t bad[] = {7, (uint64_t)-5, 300, largest + 1, 9};
    const uint64_t next[] = {1, 2, 3, 4, 5};
    unsigned char records[2 * SPOOL_HOT_MAX];
    uint64_t fields[SPOOL_HOT_FIELDS];
    unsigned char *second = spool_put(records, SPOOL_CALL, bad, 5), *end = spool_put(second, SPOOL_REQUEST, next, 5);
    const unsigned char *at = spool_get(records, end, fields);
    CHECK(at == second);
    const uint64_t expected[] = {7, 0, 300, 0, 9};
    CHECK(memcmp(fields, expected, sizeof expected) == 0);
    CHECK(spool_get(at, end, fields) == end);
    CHECK(memcmp(fields, next, sizeof next) == 0);
}

int main(void)
{
    test_known_bytes();
    test_lengths();
    test_all_lengths();
    test_random_values();
    test_too_large();
    return check_summary();
}
