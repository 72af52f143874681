#include "sql.h"

#include <stdio.h>
#include <stdlib.h>

void store_check(struct store_tables *tables, int code)
{
    if (code == SQLITE_OK || code == SQLITE_DONE || tables->failed)
        return;
    tables->failed = code;
    snprintf(tables->trouble, sizeof tables->trouble, "%s", tables->db ? sqlite3_errmsg(tables->db) : sqlite3_errstr(code));
}

void store_run(struct store_tables *tables, enum store_statement which)
{
    store_check(tables, sqlite3_step(tables->statements[which]));
    sqlite3_reset(tables->statements[which]);
    sqlite3_clear_bindings(tables->statements[which]);
}

/* Length of the UTF-8 character at `at` (RFC 3629), 0 when there is none. */
static size_t utf8_bytes(const unsigned char *at, size_t left)
{
    size_t bytes = at[0] < 0x80                    ? 1
                   : at[0] >= 0xc2 && at[0] < 0xe0 ? 2
                   : at[0] >= 0xe0 && at[0] < 0xf0 ? 3
                   : at[0] >= 0xf0 && at[0] < 0xf5 ? 4
                                                   : 0;
    if (bytes > left)
        return 0;
    for (size_t i = 1; i < bytes; i++)
        if ((at[i] & 0xc0) != 0x80)
            return 0;
    int overlong = (at[0] == 0xe0 && at[1] < 0xa0) || (at[0] == 0xf0 && at[1] < 0x90);
    int beyond = (at[0] == 0xed && at[1] >= 0xa0) || (at[0] == 0xf4 && at[1] >= 0x90);
    return at[0] && !overlong && !beyond ? bytes : 0;
}

void store_text(struct store_tables *tables, enum store_statement which, int at, const void *text, size_t bytes)
{
    char *copy = malloc(bytes + 1);
    if (!copy) {
        store_check(tables, SQLITE_NOMEM);
        return;
    }
    for (size_t i = 0, valid; i < bytes; i += valid ? valid : 1) {
        valid = utf8_bytes((const unsigned char *)text + i, bytes - i);
        if (valid)
            memcpy(copy + i, (const char *)text + i, valid);
        else
            copy[i] = '?';
    }
    store_check(tables, sqlite3_bind_text(tables->statements[which], at, copy, (int)bytes, free));
}
