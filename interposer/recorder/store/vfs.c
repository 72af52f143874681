#include "vfs.h"

#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>

enum { LONGEST = 4096 }; /* PATH_MAX of Linux */

static struct {
    sqlite3_vfs vfs, *base;
} with_locks, without_locks;
static pthread_once_t filled = PTHREAD_ONCE_INIT;

/* As SQLite has it, or as it was given where that is more than SQLite has room for. */
static int full_name(sqlite3_vfs *vfs, const char *name, int bytes, char *full)
{
    sqlite3_vfs *base = vfs == &with_locks.vfs ? with_locks.base : without_locks.base;
    int code = base->xFullPathname(base, name, bytes, full);
    if ((code & 0xff) == SQLITE_OK)
        return code;
    return snprintf(full, (size_t)bytes, "%s", name) < bytes ? SQLITE_OK : SQLITE_CANTOPEN;
}

static void fill(sqlite3_vfs *ours, sqlite3_vfs **base, const char *name, const char *base_name)
{
    *base = sqlite3_vfs_find(base_name);
    if (!*base)
        return;
    *ours = **base;
    ours->zName = name;
    ours->pNext = NULL;
    ours->mxPathname = LONGEST;
    ours->xFullPathname = full_name;
}

static void fill_both(void)
{
    sqlite3_initialize();
    fill(&with_locks.vfs, &with_locks.base, "lapscope", "unix");
    fill(&without_locks.vfs, &without_locks.base, "lapscope-none", "unix-none");
}

const char *store_vfs(int locks)
{
    pthread_once(&filled, fill_both);
    sqlite3_vfs *ours = locks ? &with_locks.vfs : &without_locks.vfs;
    if (!ours->zName || sqlite3_vfs_register(ours, 0) != SQLITE_OK) /* again, should somebody have shut SQLite down */
        return locks ? "unix" : "unix-none";
    return ours->zName;
}
