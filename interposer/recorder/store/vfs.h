/* SQLite's way to files refuses names of more than 512 bytes, which the system does not. */
#ifndef LAPSCOPE_STORE_VFS_H
#define LAPSCOPE_STORE_VFS_H

/* The name of a way to files that takes all that the system takes, with SQLite's locks or without: for
 * sqlite3_open_v2(). It is not SQLite's default, so nobody else in the process meets it. */
const char *store_vfs(int locks);

#endif
