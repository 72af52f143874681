/* As elsewhere.c, built with the address sanitizer. */
#include "elsewhere.c"
