/*
 * LAPSCOPE_FILES=node: the directory on the node's own storage in which the ranks of a node keep their spools, and what
 * the run directory has of it. Found without talking to anybody: all ranks that share a storage come to the same names.
 *
 * node-HOST.spool-at in the run directory says where the spools are, "HOST<TAB>PATH". It reserves node-HOST.db, which is
 * made of them. Where these names are taken, by another directory or an earlier database, +2, +3 ... stands behind HOST.
 */
#ifndef LAPSCOPE_NODEDIR_H
#define LAPSCOPE_NODEDIR_H

#include "job.h"

#include <stddef.h>

enum { NODEDIR_PATH_BYTES = 4096 };

struct nodedir {
    const char *run;                   /* the run directory */
    char host[256];
    char path[NODEDIR_PATH_BYTES];     /* where the spools are */
    char pointer[NODEDIR_PATH_BYTES + 300];
    char database[NODEDIR_PATH_BYTES + 300];
    unsigned databases;                /* of this host that were there before it */
};

/* Finds or makes the directory of a job on this node. Returns 0, or an errno value; `path` is what could not be made then. */
int nodedir_open(struct nodedir *node, const char *run, const struct job *job);

/* Finds the pointer to the directory, or makes it: `pointer` and `database` are set. Returns 0, or an errno value. */
int nodedir_point(struct nodedir *node);

/* Removes the directory and the pointer when no spool is left in it. */
void nodedir_leave(struct nodedir *node);

#endif
