#include "support.h"

#include <dirent.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

char support_directory[64];
static char text[65536];

void support_begin(void)
{
    const char *parent = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp"; /* thousands of small files */
    snprintf(support_directory, sizeof support_directory, "%s/lapscope-test.XXXXXX", parent);
    if (!mkdtemp(support_directory)) {
        perror(support_directory);
        exit(2);
    }
}

const char *support_path(const char *name)
{
    static char paths[4][512];
    static unsigned next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", support_directory, name);
    return path;
}

static unsigned each_file(int remove_it)
{
    unsigned count = 0;
    DIR *directory = opendir(support_directory);
    for (struct dirent *entry; directory && (entry = readdir(directory));) {
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
            continue;
        count++;
        if (remove_it)
            unlink(support_path(entry->d_name));
    }
    if (directory)
        closedir(directory);
    return count;
}

unsigned support_files(void)
{
    return each_file(0);
}

void support_end(void)
{
    each_file(1);
    rmdir(support_directory);
}

static void add(const char *more)
{
    size_t used = strlen(text);
    snprintf(text + used, sizeof text - used, "%s", more);
}

static const char *rows_of(sqlite3 *db, const char *query)
{
    sqlite3_stmt *statement = NULL;
    int code = sqlite3_prepare_v2(db, query, -1, &statement, NULL);
    while (code == SQLITE_OK || code == SQLITE_ROW) {
        code = sqlite3_step(statement);
        for (int i = 0; code == SQLITE_ROW && i < sqlite3_column_count(statement); i++) {
            const unsigned char *value = sqlite3_column_text(statement, i);
            add(i ? "|" : "");
            add(value ? (const char *)value : "NULL");
        }
        add(code == SQLITE_ROW ? "\n" : "");
    }
    if (code != SQLITE_DONE)
        add(sqlite3_errmsg(db));
    sqlite3_finalize(statement);
    return text;
}

const char *support_rows(const char *database, const char *query)
{
    sqlite3 *db = NULL;
    text[0] = '\0';
    if (sqlite3_open_v2(database, &db, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK)
        rows_of(db, query);
    else
        add(sqlite3_errmsg(db));
    sqlite3_close(db);
    return text;
}

int64_t support_number(const char *database, const char *query)
{
    return strtoll(support_rows(database, query), NULL, 10);
}

static const char *const rules[] = {
    /* each gives a row for each violation */
    "SELECT * FROM pragma_integrity_check WHERE integrity_check <> 'ok'",
    "SELECT 'one rank' WHERE (SELECT count(*) FROM rank) <> 1",
    "SELECT 'request without operation', id FROM request WHERE operation_id IS NOT NULL"
    " AND operation_id NOT IN (SELECT id FROM operation)",
    "SELECT 'request without call', id FROM request WHERE completion_id IS NOT NULL"
    " AND completion_id NOT IN (SELECT id FROM call)",
    "SELECT 'request without thread', id FROM request WHERE thread_id IS NOT NULL"
    " AND thread_id NOT IN (SELECT id FROM thread)",
    "SELECT 'call without operation', id FROM call WHERE operation_id IS NOT NULL"
    " AND operation_id NOT IN (SELECT id FROM operation)",
    "SELECT 'call without receive', id FROM call WHERE receive_operation_id IS NOT NULL"
    " AND receive_operation_id NOT IN (SELECT id FROM operation)",
    "SELECT 'call without thread', id FROM call WHERE thread_id IS NOT NULL"
    " AND thread_id NOT IN (SELECT id FROM thread)",
    "SELECT 'operation without name', id FROM operation WHERE call_id IS NOT NULL"
    " AND call_id NOT IN (SELECT id FROM call_name)",
    "SELECT 'operation without path', id FROM operation WHERE call_path_id IS NOT NULL"
    " AND call_path_id NOT IN (SELECT id FROM call_path)",
    "SELECT 'operation without comm', id FROM operation WHERE communicator_id IS NOT NULL"
    " AND communicator_id NOT IN (SELECT id FROM communicator)",
    "SELECT 'frame without path', call_path_id FROM frame WHERE call_path_id IS NOT NULL"
    " AND call_path_id NOT IN (SELECT id FROM call_path)",
    "SELECT 'frame without module', call_path_id FROM frame WHERE module_id IS NOT NULL"
    " AND module_id NOT IN (SELECT id FROM module)",
    "SELECT 'tally without name', call_id FROM tally WHERE call_id IS NOT NULL"
    " AND call_id NOT IN (SELECT id FROM call_name)",
    "SELECT 'tally without thread', thread_id FROM tally WHERE thread_id IS NOT NULL"
    " AND thread_id NOT IN (SELECT id FROM thread)",
    "SELECT 'ids not dense', n FROM (SELECT max(id) m, count(*) n FROM request) WHERE m <> n",
    "SELECT 'call ids not dense', n FROM (SELECT max(id) m, count(*) n FROM call) WHERE m <> n",
    "SELECT 'not by completion', id FROM (SELECT id, ifnull(completion_id, 1 << 60) c,"
    " lag(ifnull(completion_id, 1 << 60)) OVER (ORDER BY id) b FROM request) WHERE c < b",
    "SELECT 'completed', id FROM call LEFT JOIN (SELECT completion_id c, count(*) n FROM request GROUP BY 1) ON c = id"
    " WHERE completed < ifnull(n, 0) OR (completed > ifnull(n, 0) AND (SELECT summarized FROM rank) = 0)",
    /* what readers refuse, crates/data/src/db/rules.rs */
    "SELECT 'call time', id FROM call WHERE begin_ns NOT BETWEEN 0 AND 1 << 56 OR duration_ns NOT BETWEEN 0 AND 1 << 56",
    "SELECT 'request time', id FROM request WHERE post_begin_ns NOT BETWEEN 0 AND 1 << 56"
    " OR post_ns NOT BETWEEN 0 AND 1 << 56 OR mpi_ns NOT BETWEEN 0 AND 1 << 56 OR injection_arm NOT BETWEEN 0 AND 1",
    "SELECT 'rank time', rank FROM rank WHERE init_end_ns NOT BETWEEN 0 AND 1 << 56 OR end_ns NOT BETWEEN 0 AND 1 << 56"
    " OR world < 1 OR life < 1 OR epoch_ns NOT BETWEEN 0 AND 7000000000000000000",
    "SELECT 'operation bytes', id FROM operation WHERE bytes NOT BETWEEN 0 AND 1 << 62 OR posted_bytes NOT BETWEEN 0 AND 1 << 62",
    "SELECT 'tally', call_id FROM tally WHERE size_class NOT BETWEEN 0 AND 64 OR count NOT BETWEEN 0 AND 1 << 48"
    " OR bytes NOT BETWEEN 0 AND 1 << 62",
    "SELECT 'thread', id FROM thread WHERE calls NOT BETWEEN 0 AND 1 << 48 OR mpi_ns NOT BETWEEN 0 AND 1 << 56",
    "SELECT 'communicator', id FROM communicator WHERE comm_rank < 0 OR ordinal NOT BETWEEN 0 AND 2147483647",
    "SELECT 'ended', r.id FROM request r JOIN operation o ON o.id = r.operation_id"
    " WHERE o.ended IS NULL OR (o.ended = 'pending') <> (r.completion_id IS NULL)",
};

const char *support_broken_rules(const char *database)
{
    sqlite3 *db = NULL;
    text[0] = '\0';
    if (sqlite3_open_v2(database, &db, SQLITE_OPEN_READONLY, NULL) != SQLITE_OK)
        add(sqlite3_errmsg(db));
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        rows_of(db, rules[i]);
    sqlite3_close(db);
    return text;
}

uint64_t support_random(uint64_t *state) /* splitmix64 */
{
    uint64_t z = *state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}
