/* The threads of this process, as proc(5) has them. */
#ifndef LAPSCOPE_TASKS_H
#define LAPSCOPE_TASKS_H

#include <sys/types.h>

/* How many there are; 0: not known. Cheap. */
unsigned tasks_count(void);

/* The first `most` of them; returns how many these are. */
unsigned tasks_list(pid_t *tids, unsigned most);

#endif
