/* What the tests of the conversion share: a directory of their own, and SQLite read back as text. */
#ifndef LAPSCOPE_TEST_SUPPORT_H
#define LAPSCOPE_TEST_SUPPORT_H

#include <stddef.h>
#include <stdint.h>

/* A private directory, removed by support_end() with the files in it. */
extern char support_directory[64];
void support_begin(void);
void support_end(void);
/* A path in it; one of four buffers used in turn. */
const char *support_path(const char *name);
/* Files in it. */
unsigned support_files(void);

/* The rows that a query gives: columns separated by |, NULL spelled out, a line feed behind each row. An error gives
 * its message. The text is valid until the next call. */
const char *support_rows(const char *database, const char *query);
int64_t support_number(const char *database, const char *query);

/* What holds in every database, damaged spool or not: integrity, references, orders. Empty when all of it does. */
const char *support_broken_rules(const char *database);

uint64_t support_random(uint64_t *state);

#endif
