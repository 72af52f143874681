/* Marks: names at addresses that may be none, and what becomes of them. */
#define _GNU_SOURCE
#include "bring_up.h"
#include "check.h"

#include "../recorder/base/config.h"
#include "../recorder/base/name.h"
#include "../recorder/record/mark.h"
#include "../recorder/spool/reader.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { PAGE = 4096 };

static char *two_pages(void)
{
    char *pages = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(pages != MAP_FAILED);
    return pages;
}

static int is_name(const char *text)
{
    char name[NAME_BYTES];
    return name_at((uintptr_t)text, name);
}

static void test_what_is_a_name(void)
{
    char name[NAME_BYTES], longest[NAME_BYTES + 1] = "";
    memset(name, 'x', sizeof name);
    CHECK(name_at((uintptr_t) "solve", name));
    CHECK_TEXT(name, "solve");
    for (unsigned i = 5; i < NAME_BYTES; i++)
        CHECK_EQUAL(name[i], 0); /* they are compared as a whole */
    CHECK(is_name("a b/c:1"));
    CHECK(is_name("l\xc3\xb6sen \xe2\x82\xac \xf0\x9f\x98\x80"));
    CHECK(!is_name(""));
    memset(longest, 'x', NAME_BYTES - 1);
    CHECK(is_name(longest));
    memset(longest, 'x', NAME_BYTES);
    CHECK(!is_name(longest));
}

static void test_what_is_none(void)
{
    CHECK(!is_name("a\tb"));
    CHECK(!is_name("line\n"));
    CHECK(!is_name("\x1b[31m"));
    CHECK(!is_name("\x7f"));
    CHECK(!is_name("\xc2\x85"));             /* a control of two bytes */
    CHECK(!is_name("a\xe2\x80\xae" "b"));     /* from right to left */
    CHECK(!is_name("a\xe2\x80\xa8" "b"));     /* line separator */
    CHECK(!is_name("\xef\xbf\xbf"));
    CHECK(!is_name("\xff"));
    CHECK(!is_name("\xc3"));                  /* ends within a character */
    CHECK(!is_name("\xc0\xaf"));              /* longer than it need be */
    CHECK(!is_name("\xed\xa0\x80"));          /* half of a pair */
    CHECK(!is_name("\xf4\x90\x80\x80"));      /* behind the last one */
    CHECK(!is_name("\x80" "a"));
}

static void test_addresses_that_are_none(void)
{
    static const uintptr_t none[] = {0, 1, 64, PAGE - 1, UINTPTR_MAX, UINTPTR_MAX - 63, UINTPTR_MAX / 2 + 1,
                                     (uintptr_t)1 << 47, ((uintptr_t)1 << 47) - 10, (uintptr_t)1 << 63};
    char name[NAME_BYTES], *pages = two_pages();
    for (unsigned i = 0; i < sizeof none / sizeof none[0]; i++)
        CHECK(!name_at(none[i], name));
    strcpy(pages, "gone");
    CHECK(is_name(pages));
    CHECK_EQUAL(mprotect(pages, PAGE, PROT_NONE), 0);
    CHECK(!is_name(pages));
    CHECK_EQUAL(munmap(pages, 2 * PAGE), 0);
    CHECK(!is_name(pages));
}

/* A name may end where what is mapped ends, and go on behind the end of a page. */
static void test_ends_of_pages(void)
{
    char *pages = two_pages(), *at = pages + PAGE - 6;
    memcpy(at, "solve", 6);
    CHECK(is_name(at));
    memcpy(at, "solve and write", 16);
    CHECK(is_name(at));
    CHECK_EQUAL(munmap(pages + PAGE, PAGE), 0);
    CHECK(!is_name(at)); /* goes on where nothing is */
    memcpy(at, "solve", 6);
    CHECK(is_name(at));
    pages[PAGE - 1] = 'x';
    CHECK(!is_name(at));
    CHECK(!is_name(pages + PAGE));
    CHECK_EQUAL(munmap(pages, PAGE), 0);
}

struct found {
    unsigned marks, names;
    int64_t levels;   /* their sum */
    uint64_t last[3]; /* the fields of the last one */
};

/* What stands in the thread's chunk behind `from`. */
static struct found found_behind(const struct thread *t, const unsigned char *from)
{
    struct found found = {0};
    struct spool_file file = {.data = from};
    struct spool_cursor cursor = {from, t->stream.at};
    struct spool_view view;
    while (spool_next_record(&file, &cursor, &view) == 1) {
        found.names += view.type == SPOOL_MARK_NAME;
        if (view.type != SPOOL_MARK)
            continue;
        found.marks++;
        found.levels += (int64_t)(view.fields[1] >> 1) * (view.fields[1] & 1 ? -1 : 1) - (int64_t)(view.fields[1] & 1);
        memcpy(found.last, view.fields, sizeof found.last);
    }
    CHECK_EQUAL(file.damaged, 0);
    return found;
}

static void test_records(struct thread *t)
{
    const unsigned char *from = t->stream.at;
    config.max_mb = 100;
    errno = 77;
    mark(t, 1, (uintptr_t) "solve");
    mark(t, 2, 12345);
    mark(t, -1, (uintptr_t) "solve");
    mark(t, 1, (uintptr_t) "write");
    struct found found = found_behind(t, from);
    CHECK(found.marks == 4 && found.names == 2 && found.levels == 3 && found.last[2] == 2);
    from = t->stream.at;
    mark(t, 1, 1);               /* no name */
    mark(t, -1, 0);
    mark(t, 3, (uintptr_t) "solve"); /* a level that is somebody else's */
    mark(t, -2, (uintptr_t) "solve");
    CHECK(t->stream.at == from);
    mark(t, 0, (uintptr_t) "solve");
    found = found_behind(t, from);
    CHECK(found.marks == 1 && found.names == 0 && found.levels == 0);
    from = t->stream.at;
    mark(t, 0, 0); /* once is enough */
    CHECK(t->stream.at == from);
    CHECK_EQUAL(errno, 77);
    CHECK_EQUAL(spool_header()->lost_marks, 0);
}

static void test_bounds(struct thread *t)
{
    char name[32];
    for (int i = 0; i < MARK_NAMES + 10; i++) {
        snprintf(name, sizeof name, "name %d", i);
        mark(t, 1, (uintptr_t)name);
    }
    CHECK_EQUAL(spool_header()->lost_marks, 12); /* two names were there */
    mark(t, -1, (uintptr_t) "solve");              /* those that are known go on */
    CHECK_EQUAL(spool_header()->lost_marks, 12);
    config.max_mb = 1;
    uint64_t before = spool_header()->lost_marks;
    for (int i = 0; i < MARKS_A_MB; i++)
        mark(t, 2, 0);
    CHECK_EQUAL(spool_header()->lost_marks - before, MARK_NAMES - 2 + 6); /* so many were there */
    CHECK_EQUAL(spool_header()->lost_records, 0);
}

int main(void)
{
    test_what_is_a_name();
    test_what_is_none();
    test_addresses_that_are_none();
    test_ends_of_pages();
    struct thread *t = bring_up();
    test_records(t);
    test_bounds(t);
    tear_down();
    return check_summary();
}
