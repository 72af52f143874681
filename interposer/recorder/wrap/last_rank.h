/* LAPSCOPE_FILES=node: the last rank of a node to end makes the node's database of the spools of all. */
#ifndef LAPSCOPE_LAST_RANK_H
#define LAPSCOPE_LAST_RANK_H

#include "../base/nodedir.h"

/* Called by each rank when its spool says that it has ended. `quiet`: nobody wants to know where the data are. */
void last_rank_convert(struct nodedir *node, int quiet);

#endif
