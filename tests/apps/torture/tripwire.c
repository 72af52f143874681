/* The allocator of tripwire.h as a library for LD_PRELOAD, as others bring theirs. */
#include "tripwire.h"
