/* Every call in every binding, in the order of the preload library's slots (preload/host.h). */
#ifndef LAPSCOPE_FUNCTION_H
#define LAPSCOPE_FUNCTION_H

enum function {
#define FUNCTION(function) FUNCTION_##function,
#define SYMBOL(name, function)
#include "functions.inc"
#undef FUNCTION
#undef SYMBOL
    FUNCTION_COUNT
};

#endif
