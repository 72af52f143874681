/* Prints how many watchpoints a thread can have at once here; 0 where they are refused. Not an MPI program. */
#include "watchpoint.h"

#include <stdio.h>

int main(void)
{
    static volatile int64_t words[MOST_WATCHPOINTS];
    int events[MOST_WATCHPOINTS];
    printf("%d\n", watch_most(words, MOST_WATCHPOINTS, events));
    return 0;
}
