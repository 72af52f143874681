/* schema/README.md keeps what it promises: its queries run, and it names every view. */
#include "check.h"
#include "sample.h"
#include "support.h"

#include "../recorder/store/store.h"

#include <sqlite3.h>

static char readme[65536];
static sqlite3 *db;

static void read_text(const char *path)
{
    FILE *file = fopen(path, "r");
    CHECK(file != NULL);
    if (!file)
        return;
    size_t bytes = fread(readme, 1, sizeof readme - 1, file);
    CHECK(bytes < sizeof readme - 1);
    fclose(file);
}

static void open_sample(void)
{
    struct spool_builder b;
    struct sample_ends ends;
    struct store_result result;
    char error[512] = "";
    build_sample(&b, &ends);
    build_write(&b, support_path("rank-3.spool"), b.bytes);
    build_free(&b);
    CHECK_EQUAL(store_convert(support_path("rank-3.spool"), support_path("rank-3.db"), NULL, NULL, &result, error, sizeof error),
                0);
    CHECK_EQUAL(sqlite3_open_v2(support_path("rank-3.db"), &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
}

static void test_queries(void)
{
    static const char begin[] = "\n```sql\n", end[] = "\n```\n";
    unsigned count = 0, with_rows = 0;
    for (char *at = readme; (at = strstr(at, begin)); count++) {
        at += strlen(begin);
        char *stop = strstr(at, end);
        sqlite3_stmt *statement = NULL;
        int code = stop ? sqlite3_prepare_v2(db, at, (int)(stop - at), &statement, NULL) : SQLITE_ERROR;
        if (code != SQLITE_OK)
            printf("%s\n%.200s\n", sqlite3_errmsg(db), at);
        CHECK_EQUAL(code, SQLITE_OK);
        with_rows += code == SQLITE_OK && sqlite3_step(statement) == SQLITE_ROW;
        sqlite3_finalize(statement);
    }
    CHECK(count >= 8);
    CHECK_EQUAL(with_rows, count);
}

static void test_views(void)
{
    sqlite3_stmt *statement = NULL;
    CHECK_EQUAL(sqlite3_prepare_v2(db, "SELECT name FROM sqlite_schema WHERE type = 'view'", -1, &statement, NULL), SQLITE_OK);
    while (sqlite3_step(statement) == SQLITE_ROW) {
        char quoted[128];
        snprintf(quoted, sizeof quoted, "`%s`", (const char *)sqlite3_column_text(statement, 0));
        if (!strstr(readme, quoted))
            printf("schema/README.md does not name %s\n", quoted);
        CHECK(strstr(readme, quoted) != NULL);
    }
    sqlite3_finalize(statement);
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: %s schema/README.md\n", argv[0]);
        return 2;
    }
    support_begin();
    read_text(argv[1]);
    open_sample();
    test_queries();
    test_views();
    sqlite3_close(db);
    support_end();
    return check_summary();
}
